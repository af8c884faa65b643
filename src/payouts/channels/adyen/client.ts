import { type Static, Type } from 'typebox'
import { Agent } from 'undici'
import { ajv } from '../../../kernel/json-schema.ts'
import { readApiKey } from './secrets.ts'
import type { AdyenSettings } from './settings.ts'
import { readTransfer, readTransferList, type Transfer, type TransferPage } from './transfer.ts'

const limits = {
  // Long enough for a slow answer; a payment whose answer is cut off is looked up later.
  requestMsMax: 10_000,
  connectMsMax: 5_000,
  // A page of 100 transfers with all their events is some 500 KB.
  answerBytesMax: 4 * 1024 * 1024,
  /** Requests at a time, each over a connection. */
  requestsMax: 8,
}

// The most transfers that the vendor gives on one page.
const transfersPerPage = 100

/** Nothing is known: the bank did not answer, or failed to. The request may have had its effect. */
export class NoAnswer extends Error {}

/** The bank refused a request. The message has neither bank details nor the bank's own words, which may hold some. */
export class Refused extends Error {
  readonly status: number
  /** The bank's code, verbatim. */
  readonly code: string
  /** The fields that it calls invalid: `counterparty.bankAccount.accountIdentification.iban`. */
  readonly fields: readonly string[]

  constructor({ status, code, fields }: { status: number; code: string; fields: readonly string[] }) {
    super(`Adyen refuses the request with ${status} ${code}`)
    this.status = status
    this.code = code
    this.fields = fields
  }
}

/** Calls the Transfers API, at the configured address only: redirects and links are not followed. */
export class AdyenClient {
  private readonly settings: AdyenSettings
  private readonly requestMsMax: number
  private readonly agent = new Agent({
    connections: limits.requestsMax,
    pipelining: 1,
    allowH2: false,
    connectTimeout: limits.connectMsMax,
    // `send` has one timer for the whole request.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: limits.answerBytesMax,
  })

  constructor(settings: AdyenSettings, requestMsMax = limits.requestMsMax) {
    this.settings = settings
    this.requestMsMax = requestMsMax
  }

  /**
   * Makes a transfer. Idempotent by the key for at least a week.
   * @throws NoAnswer, Refused, SecretFileProblem
   */
  async create(info: object, { key, signal }: { key: string; signal: AbortSignal }): Promise<Transfer> {
    return readTransfer(await this.exchange({ method: 'POST', path: '/transfers', body: info, key }, signal))
  }

  /** @throws NoAnswer, Refused, SecretFileProblem */
  async get(transferId: string, signal: AbortSignal): Promise<Transfer> {
    return readTransfer(
      await this.exchange({ method: 'GET', path: `/transfers/${encodeURIComponent(transferId)}` }, signal),
    )
  }

  /**
   * Lists the payouts of the account that were created in a period of at most six months, oldest first.
   * @throws NoAnswer, Refused, SecretFileProblem
   */
  async list(
    { since, until, reference, cursor }: { since: Date; until: Date; reference?: string; cursor?: string | null },
    signal: AbortSignal,
  ): Promise<TransferPage> {
    const query = new URLSearchParams({
      balanceAccountId: this.settings.balanceAccountId,
      category: 'bank',
      createdSince: since.toISOString(),
      createdUntil: until.toISOString(),
      limit: String(transfersPerPage),
      ...(reference === undefined ? {} : { reference }),
      ...(cursor == null ? {} : { cursor }),
    })
    return readTransferList(await this.exchange({ method: 'GET', path: `/transfers?${query}` }, signal))
  }

  private async exchange(
    { method, path, body, key }: { method: 'GET' | 'POST'; path: string; body?: object; key?: string },
    signal: AbortSignal,
  ): Promise<unknown> {
    const apiKey = await readApiKey(this.settings)
    const { origin, pathname } = new URL(this.settings.baseUrl)
    const { status, text } = await this.send(
      {
        origin,
        path: `${pathname}${path}`,
        method,
        headers: {
          accept: 'application/json',
          'user-agent': 'midmonth',
          'x-api-key': apiKey,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      },
      signal,
    )
    if (status >= 500 || isBusy(status)) throw new NoAnswer(`Adyen answered ${method} /transfers with ${status}`)
    const answer = parse(text)
    if (status >= 200 && status < 300) {
      if (answer === undefined) throw new NoAnswer(`Adyen answered ${method} /transfers with a body that is not JSON`)
      return answer
    }
    const refused = new Refused({ status, ...refusalIn(answer, status) })
    if (refused.code === inProgress) throw new NoAnswer('Adyen is still working on the request', { cause: refused })
    throw refused
  }

  private async send(
    request: Omit<Parameters<Agent['request']>[0], 'signal'>,
    signal: AbortSignal,
  ): Promise<{ status: number; text: string }> {
    try {
      const { statusCode, body } = await this.agent.request({
        ...request,
        signal: AbortSignal.any([signal, AbortSignal.timeout(this.requestMsMax)]),
      })
      return { status: statusCode, text: await body.text() }
    } catch (error) {
      throw new NoAnswer(`Adyen did not answer ${request.method} /transfers`, { cause: error })
    }
  }
}

/** Nothing is wrong with the request, or another one with its key is being worked on. */
function isBusy(status: number): boolean {
  return [408, 409, 423, 425, 429].includes(status)
}

/** Adyen's code for a key whose first request has not ended. */
const inProgress = '704'

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const RefusalBody = Type.Object({
  errorCode: Type.Optional(Type.String()),
  invalidFields: Type.Optional(Type.Array(Type.Object({ name: Type.String() }))),
})
const isRefusalBody = ajv.compile<Static<typeof RefusalBody>>(RefusalBody)

function refusalIn(answer: unknown, status: number): { code: string; fields: string[] } {
  if (!isRefusalBody(answer)) return { code: String(status), fields: [] }
  const { errorCode = '', invalidFields = [] } = answer
  const fields = invalidFields.map(({ name }) => name)
  return { code: /^[A-Za-z0-9_.-]{1,60}$/.test(errorCode) ? errorCode : String(status), fields }
}

/**
 * Does work for many at once, within the number of connections. Stops beginning more after a failure.
 * @returns the first failure; undefined if there was none
 */
export async function forEachAtOnce<T>(all: readonly T[], work: (each: T) => Promise<void>): Promise<unknown> {
  const waiting = [...all].reverse()
  const failures: unknown[] = []
  const workOn = async () => {
    while (failures.length === 0) {
      const each = waiting.pop()
      if (each === undefined) return
      await work(each).catch(error => failures.push(error))
    }
  }
  await Promise.all(Array.from({ length: limits.requestsMax }, workOn))
  return failures[0]
}
