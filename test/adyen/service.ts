import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

// A stand-in for the Transfers API, written only from its OpenAPI documents: it shares no code with the rail. It keeps its own
// books, is idempotent by key, and fails on demand.

/** The fate of a request for a transfer. */
export type Fault =
  /** The request is served. */
  | 'none'
  /** The connection breaks before the request has an effect. */
  | 'cut-before'
  /** The transfer is made, but the connection breaks. */
  | 'cut-after'
  /** The transfer is made, but the response never arrives. */
  | 'silent'
  /** The transfer is not made, and the response never arrives. */
  | 'deaf'
  /** The transfer is made, but the response is a 500. */
  | 'error-after'
  | 'error-before'
  /** Any other refusal: a status and a body. */
  | { status: number; body?: unknown; isOdd?: true }

type Step = { status: string; reason?: string; amount?: { value: number; currency: string } }

type WireAmount = { value: number; currency: string }
type Info = {
  amount: WireAmount
  balanceAccountId: string
  counterparty: { bankAccount: Record<string, unknown> }
  priorities?: string[]
  description?: string
  reference: string
  referenceForBeneficiary?: string
}
type Transfer = { id: string; key: string; info: Info; history: Step[]; createdAt: string; waiting: Step[] }

/** One request to the service with its response; null if no response was sent. */
export type Exchange = {
  method: string
  path: string
  query: Record<string, string>
  headers: IncomingMessage['headers']
  body: unknown
  status: number | null
  answer: unknown
  /** Whether the test asked for a response that the vendor would not send. */
  isOdd: boolean
}

const platform = 'TEST_PLATFORM'

export async function startAdyen({
  apiKey = 'AQE-test-key',
  hmacKey = '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056',
  balanceAccountId = 'BA00000000000000000000001',
  now = () => new Date(),
}: {
  apiKey?: string
  hmacKey?: string
  balanceAccountId?: string
  now?: () => Date
} = {}) {
  const transfers = new Map<string, Transfer>()
  const exchanges: Exchange[] = []
  const notifications: { body: string; status: number | null }[] = []
  const faults: Fault[] = []
  let script: (info: Info) => Step[] = () => [{ status: 'authorised' }, { status: 'booked' }]
  let notifyUrl: string | undefined
  let number = 0
  let hasNumbers = true

  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? '', 'http://adyen.test')
    const body = await text(request)
    const exchange: Exchange = {
      method: request.method ?? '',
      path: url.pathname.replace(/^\/btl\/v4/, ''),
      query: Object.fromEntries(url.searchParams),
      headers: request.headers,
      body: body === '' ? undefined : JSON.parse(body),
      status: null,
      answer: null,
      isOdd: false,
    }
    exchanges.push(exchange)
    handle(exchange, request, response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  function handle(exchange: Exchange, request: IncomingMessage, response: ServerResponse): void {
    const answer = (status: number, value: unknown, headers: Record<string, string> = {}) => {
      exchange.status = status
      exchange.answer = value
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
    }
    if (request.headers['x-api-key'] !== apiKey) {
      answer(401, {
        status: 401,
        errorCode: '000',
        message: 'HTTP Status Response - Unauthorized',
        errorType: 'security',
      })
      return
    }
    const fault = faults.shift()
    const key = String(request.headers['idempotency-key'] ?? '')
    const create = () => {
      const known = transfers.get(key)
      if (known !== undefined) return known
      const info = exchange.body as Info
      number += 1
      const id = `TR${String(number).padStart(14, '0')}`
      const made: Transfer = {
        id,
        key,
        info,
        createdAt: now().toISOString(),
        history: [{ status: 'received' }],
        waiting: script(info),
      }
      transfers.set(key, made)
      return made
    }
    const { method, path } = exchange
    const isPost = method === 'POST' && path === '/transfers'
    if (typeof fault === 'object') {
      exchange.isOdd = fault.isOdd ?? false
      answer(fault.status, fault.body ?? refusal(fault.status, '00_000'))
      return
    }
    if (isPost && (fault === 'cut-after' || fault === 'silent' || fault === 'error-after')) create()
    const found = [...transfers.values()].find(({ id }) => path === `/transfers/${id}`)
    if (fault === 'cut-after' || fault === 'cut-before') request.socket.destroy()
    else if (fault === 'error-after' || fault === 'error-before') answer(500, refusal(500, '10_001'))
    else if (fault === 'silent' || fault === 'deaf') return
    else if (isPost) answer(202, answerOf(create()), { 'idempotency-key': key })
    else if (method === 'GET' && path === '/transfers') answer(200, listOf(exchange.query))
    else if (method === 'GET' && found !== undefined) answer(200, dataOf(found))
    else answer(422, refusal(422, '30_011'))
  }

  function listOf(query: Record<string, string>) {
    const { reference, createdSince = '', createdUntil = '', balanceAccountId: account } = query
    const all = [...transfers.values()].filter(
      ({ info, createdAt }) =>
        (reference === undefined || info.reference === reference) &&
        info.balanceAccountId === account &&
        new Date(createdAt) >= new Date(createdSince) &&
        new Date(createdAt) <= new Date(createdUntil),
    )
    const start = Number(query.cursor ?? 0)
    const end = start + Number(query.limit ?? 10)
    const next = new URL(`https://balanceplatform-api-test.adyen.com/btl/v4/transfers?cursor=${end}`)
    return {
      data: all.slice(start, end).map(dataOf),
      ...(end < all.length ? { _links: { next: { href: next.href } } } : {}),
    }
  }

  /** Moves a transfer one step on, if it has a next step. @returns the notification about it */
  function step(transfer: Transfer): string | undefined {
    const next = transfer.waiting.shift()
    if (next === undefined) return undefined
    transfer.history.push(next)
    return notificationOf(transfer)
  }

  async function notify(
    body: string,
    { signature = sign(body), headers = {} }: { signature?: string | null; headers?: Record<string, string> } = {},
  ): Promise<number | null> {
    if (notifyUrl === undefined) return null
    const signed: Record<string, string> =
      signature === null ? {} : { hmacsignature: signature, protocol: 'HmacSHA256' }
    const { status } = await fetch(notifyUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...signed, ...headers },
      body,
    })
    notifications.push({ body, status })
    return status
  }

  const sign = (body: string, key = hmacKey) =>
    createHmac('sha256', Buffer.from(key, 'hex')).update(body).digest('base64')

  return {
    url: `http://127.0.0.1:${port}/btl/v4`,
    apiKey,
    hmacKey,
    balanceAccountId,
    exchanges,
    notifications,
    transfers: () => [...transfers.values()],
    transferOf: (reference: string) => [...transfers.values()].find(({ info }) => info.reference === reference),
    /** Counts how often the money of a payment has left, including money that came back later. */
    paid: (reference: string) =>
      [...transfers.values()].filter(
        ({ info, history }) =>
          info.reference === reference &&
          history.some(({ status }) => status === 'booked') &&
          !history.some(({ status }) => status === 'failed'),
      ).length,
    /** Decides what follows the receipt of each new transfer. */
    decide(by: typeof script) {
      script = by
    },
    /** The faults of the next requests, in order. */
    fail(...next: Fault[]) {
      faults.push(...next)
    },
    /** Omits the sequence number of a transfer's state, which is optional. */
    omitNumbers() {
      hasNumbers = false
    },
    /** Discards the pending faults, and sends sequence numbers again. */
    recover() {
      faults.length = 0
      hasNumbers = true
    },
    notifyAt(target: string | undefined) {
      notifyUrl = target
    },
    notify,
    sign,
    step,
    /** Moves all transfers to their final states, with a notification for each step. */
    async settle() {
      for (const transfer of transfers.values())
        for (let body = step(transfer); body !== undefined; body = step(transfer)) await notify(body)
    },
    /** Adds a transfer that was made without the rail. */
    addTransfer(key: string, info: Info, steps: Step[]) {
      number += 1
      const made: Transfer = {
        ...{ id: `TR${String(number).padStart(14, '0')}`, key, info, waiting: [] },
        ...{ createdAt: now().toISOString(), history: [{ status: 'received' }, ...steps] },
      }
      transfers.set(key, made)
      return { notification: notificationOf(made) }
    },
    notificationOf,
    async stop() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }

  /** The response to a request for a transfer. A repeated key gets the original response. */
  function answerOf({ id, info }: Transfer) {
    return {
      id,
      accountHolder: { description: 'Midmonth', id: 'AH00000000000000000000001' },
      amount: info.amount,
      balanceAccount: { description: 'Float', id: info.balanceAccountId },
      category: 'bank',
      categoryData: { priority: info.priorities?.[0] ?? 'regular', type: 'bank' },
      counterparty: info.counterparty,
      description: info.description,
      direction: 'outgoing',
      reason: 'pending',
      reference: info.reference,
      ...(info.referenceForBeneficiary === undefined ? {} : { referenceForBeneficiary: info.referenceForBeneficiary }),
      status: 'received',
      type: 'bankTransfer',
    }
  }

  function dataOf(transfer: Transfer) {
    const { id, history, createdAt, info } = transfer
    const { status = 'received', reason, amount = info.amount } = history.at(-1) ?? {}
    return {
      ...answerOf(transfer),
      amount,
      balancePlatform: platform,
      createdAt,
      creationDate: createdAt,
      updatedAt: now().toISOString(),
      events: history.map((each, index) => ({
        bookingDate: createdAt,
        id: `EVJN${id}${index}`,
        status: each.status,
        type: 'accounting',
        valueDate: createdAt,
        ...(each.status === 'booked' ? { transactionId: `EVJN${id}${index}EUR` } : {}),
      })),
      reason: reason ?? (status === 'received' ? 'pending' : 'approved'),
      ...(hasNumbers ? { sequenceNumber: history.length } : {}),
      status,
    }
  }

  function notificationOf(transfer: Transfer): string {
    return JSON.stringify({
      data: dataOf(transfer),
      environment: 'test',
      timestamp: now().toISOString(),
      type: transfer.history.length === 1 ? 'balancePlatform.transfer.created' : 'balancePlatform.transfer.updated',
    })
  }
}

export type AdyenService = Awaited<ReturnType<typeof startAdyen>>

/** The body of an error, in the shape that most refusals have. */
export function refusal(status: number, errorCode: string, fields: string[] = []) {
  return {
    type: `https://docs.adyen.com/errors/${errorCode}`,
    title: 'The request is refused',
    status,
    detail: 'DE89370400440532013000 of Mia Schulz is not what we expect',
    errorCode,
    requestId: '1W1UI15PLVGC9V8O',
    ...(fields.length === 0
      ? {}
      : {
          invalidFields: fields.map(name => ({
            name,
            value: 'DE89370400440532013000',
            message: 'Mia Schulz is wrong',
          })),
        }),
  }
}

/** The category of a transfer that the rail did not make. */
export const someCounterparty = {
  bankAccount: {
    accountHolder: { fullName: 'A. Klaassen' },
    accountIdentification: { type: 'iban', iban: 'NL91ABNA0417164300' },
  },
}
