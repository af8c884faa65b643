import type { MemberBalance, MemberPage, OwnWithdrawal, OwnWithdrawalIntent } from '../sdk/src/generated/schemas.ts'
import type { WireMoney } from './money.ts'

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

  session = () => this.#send<MemberPage>('GET', '')
  balance = () => this.#send<MemberBalance>('GET', '/balance')
  withdrawal = (id: string) => this.#send<OwnWithdrawal>('GET', `/withdrawals/${id}`)
  /** Safe to retry: a second quote moves no money. */
  quote = (amount: WireMoney) => this.#send<OwnWithdrawalIntent>('POST', '/withdrawals/intent', { amount })
  /** Idempotent: completing a quote again returns the same withdrawal. */
  complete = (withdrawalIntentId: string) =>
    this.#send<OwnWithdrawal>('POST', '/withdrawals/complete', { withdrawalIntentId })

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
