import type { WireMoney } from './money.ts'

export type Session = {
  scope: 'read' | 'withdraw'
  /** A duration, not an instant: a phone's clock may be wrong. */
  expiresInSeconds: number
  status: string
  /** The partner's name. */
  employer: string
  bankAccount: { lastFour: string } | null
}
export type Balance = {
  available: WireMoney
  lowerLimit: WireMoney
  upperLimit: WireMoney
  isTemporarilyUnavailable: boolean
}
export type Quote = {
  withdrawalIntentId: string
  amount: WireMoney
  netAmount: WireMoney
  fee: WireMoney
  bankAccount: { lastFour: string }
  expectedAt: string | null
}
export type Status = 'held' | 'submitted' | 'paid' | 'failed' | 'returned' | 'cancelled'
export type Withdrawal = {
  id: string
  status: Status
  netAmount: WireMoney
  bankAccount: { lastFour: string }
  timeline: { status: Status; at: string }[]
  expectedAt: string | null
}

type Issue = { code: string; lowerLimit?: WireMoney; upperLimit?: WireMoney }

/** A rejected or failed request. The code is `Unauthorized` if the session has ended, and `Offline` if there was no response. */
export class Refusal extends Error {
  readonly code: string
  readonly issue: Issue
  constructor(issue: Issue) {
    super(issue.code)
    this.code = issue.code
    this.issue = issue
  }
}

const limits = { attemptsMax: 3, waitMs: 1_000, waitMsMax: 5_000, responseMsMax: 20_000 }

/** Calls the operations of a member session. */
export class Api {
  readonly #baseUrl: string
  readonly #token: string
  constructor(baseUrl: string, token: string) {
    this.#baseUrl = baseUrl
    this.#token = token
  }

  session = () => this.#send<Session>('GET', '')
  balance = () => this.#send<Balance>('GET', '/balance')
  withdrawal = (id: string) => this.#send<Withdrawal>('GET', `/withdrawals/${id}`)
  /** Safe to retry: a second quote moves no money. */
  quote = (amount: WireMoney) => this.#send<Quote>('POST', '/withdrawals/intent', { amount })
  /** Idempotent: completing a quote again returns the same withdrawal. */
  complete = (withdrawalIntentId: string) =>
    this.#send<Withdrawal>('POST', '/withdrawals/complete', { withdrawalIntentId })

  // Every operation is safe to retry, so every lost connection and every busy server leads to a retry.
  async #send<Answer>(method: string, path: string, body?: object): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const response = await fetch(`${this.#baseUrl}/v1/me${path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.#token}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...{ cache: 'no-store', credentials: 'omit', referrerPolicy: 'no-referrer' },
        signal: AbortSignal.timeout(limits.responseMsMax),
      }).catch(() => null)
      if (response?.ok) return await response.json()
      const isBusy = response === null || response.status === 429 || response.status === 503
      if (!isBusy || attempt === limits.attemptsMax) throw await refusalOf(response)
      const waitMs = Number(response?.headers.get('retry-after') ?? 0) * 1_000 || limits.waitMs * attempt
      await new Promise(resolve => setTimeout(resolve, Math.min(waitMs, limits.waitMsMax)))
    }
  }
}

async function refusalOf(response: Response | null): Promise<Refusal> {
  if (response === null) return new Refusal({ code: 'Offline' })
  if (response.status === 401) return new Refusal({ code: 'Unauthorized' })
  const { issues } = await response.json().catch(() => ({ issues: [] }))
  return new Refusal(issues[0] ?? { code: 'InternalServerError' })
}
