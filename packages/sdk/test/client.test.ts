import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import {
  ApiError,
  ConflictError,
  ConnectionError,
  gbp,
  InternalServerError,
  type LogEntry,
  MemberInsufficientFundsError,
  Midmonth,
  MidmonthError,
  TimeoutError,
} from '../src/index.ts'
import { waitMsOf } from '../src/retries.ts'

const apiKey = 'mm_test_secret'
const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

type Answer = { status?: number; headers?: Record<string, string>; body?: object | string } | 'hang' | 'close'
const paid = { body: { id: 'w_1', status: 'held' } }
const issue = (code: string, more: object = {}) => ({ issues: [{ code, message: `It is ${code}.`, ...more }] })
const conflict = { status: 409, headers: { 'x-should-retry': 'true', 'retry-after': '0' }, body: issue('Conflict') }

/** Starts a service that returns these responses in turn, repeating the last, and a client for it. */
async function serve(answers: Answer[], settings: object = {}) {
  const requests: { method: string; url: string; headers: IncomingMessage['headers'] }[] = []
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url = '', headers } = request
    const answer = answers[Math.min(requests.length, answers.length - 1)] ?? {}
    requests.push({ method, url, headers })
    if (answer === 'hang') return
    if (answer === 'close') return void request.socket.destroy()
    const { status = 200, headers: more, body = {} } = answer
    const requestId = String(headers['x-request-id'])
    response.writeHead(status, { 'x-request-id': requestId, ...more })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  closers.push(async () => {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  })
  const log: LogEntry[] = []
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const midmonth = new Midmonth({ apiKey, baseUrl, log: entry => log.push(entry), ...settings })
  return { midmonth, requests, log, baseUrl }
}
const failureOf = async (call: Promise<unknown>): Promise<unknown> =>
  await call.then(
    () => expect.fail('The call did not fail'),
    error => error,
  )
const idempotencyKeys = (requests: { headers: IncomingMessage['headers'] }[]) =>
  requests.map(({ headers }) => headers['x-idempotency-key'])

test('a write has an idempotency key, the same in each attempt and another for each call', async () => {
  const { midmonth, requests } = await serve([conflict, 'close', paid])
  await midmonth.withdrawals.complete({ withdrawalIntentId: 'wi_1' })
  await midmonth.withdrawals.complete({ withdrawalIntentId: 'wi_1' })
  const [first, second, third, fourth] = idempotencyKeys(requests)
  expect(first).toMatch(/^[0-9a-f-]{36}$/)
  expect([second, third]).toEqual([first, first])
  expect(fourth).toMatch(/^[0-9a-f-]{36}$/)
  expect(fourth).not.toBe(first)
})

test('the caller can set an idempotency key, and a read has none', async () => {
  const { midmonth, requests } = await serve([paid])
  await midmonth.withdrawals.complete({ withdrawalIntentId: 'wi_1' }, { idempotencyKey: 'payout 17' })
  await midmonth.withdrawals.get('w_1')
  expect(idempotencyKeys(requests)).toEqual(['payout 17', undefined])
})

test('the caller’s idempotency key is sent only with the first page of a list', async () => {
  const page = (memberId: string) => ({ body: { members: [{ memberId }], total: 2, skip: 0, take: 1 } })
  const { midmonth, requests } = await serve([page('mem_2'), { body: { members: [], total: 2, skip: 1, take: 1 } }])
  const members = []
  for await (const member of midmonth.members.list({ take: 1 }, { idempotencyKey: 'k-1' })) members.push(member)
  expect(members).toHaveLength(1)
  expect(idempotencyKeys(requests)).toEqual(['k-1', undefined])
})

test.each([
  'pay.example.com',
  'localhost:8080',
  '127.0.0.1:8080',
  '//pay.example.com',
  'ftp://pay.example.com',
  'https://',
  '',
])('a base URL without an HTTP scheme is rejected with an example: %s', baseUrl => {
  expect(() => new Midmonth({ apiKey, baseUrl })).toThrow(/^baseUrl must be an address with its scheme/)
})

test.each(['https://user:word@pay.example.com', 'https://pay.example.com?x=1', 'https://pay.example.com#x'])(
  'a base URL with a user, query or fragment is rejected without showing it: %s',
  url => {
    const create = () => new Midmonth({ apiKey, baseUrl: url })
    expect(create).toThrow(TypeError)
    expect(create).toThrow('baseUrl must have no user, password, query or fragment')
  },
)

test.each([
  ['a connection that breaks', ['close', 'close', paid], 3],
  ['x-should-retry: true, whatever the status', [conflict, conflict, paid], 3],
  ['a 503 from a proxy without a hint', [{ status: 503, body: '<html>' }, paid], 2],
] as [string, Answer[], number][])('%s is retried', async (_, answers, attempts) => {
  const { midmonth, requests } = await serve(answers)
  const answer = await midmonth.withdrawals.complete({ withdrawalIntentId: 'wi_1' }).withResponse()
  expect(answer.attempts).toBe(attempts)
  expect(requests).toHaveLength(attempts)
})

test.each([
  ['x-should-retry: false, whatever the status', { status: 503, headers: { 'x-should-retry': 'false' } }],
  ['a 409 without a hint', { status: 409 }],
  ['a redirect, which would send the key to another address', { status: 307, headers: { location: '/elsewhere' } }],
] as [string, Answer][])('%s is not retried', async (_, answer) => {
  const { midmonth, requests } = await serve([answer])
  expect(await failureOf(midmonth.withdrawals.complete({ withdrawalIntentId: 'wi_1' }))).toBeInstanceOf(ApiError)
  expect(requests).toHaveLength(1)
})

test('after two retries the last error is thrown; retriesMax changes this for the client or one call', async () => {
  const { midmonth, requests } = await serve([conflict])
  expect(await failureOf(midmonth.withdrawals.get('w_1'))).toBeInstanceOf(ConflictError)
  expect(requests).toHaveLength(3)
  await failureOf(midmonth.withdrawals.get('w_1', { retriesMax: 0 }))
  expect(requests).toHaveLength(4)
})

test('the wait doubles from half a second to eight, with jitter, and follows retry-after up to a minute', () => {
  const error = (headers: Record<string, string>, status = 503) =>
    new ApiError([], { status, headers: new Headers(headers), requestId: 'req_1' })
  const waits = [1, 2, 3, 4, 5, 6, 30].map(attempt => waitMsOf(error({ 'x-should-retry': 'true' }), attempt, 0))
  expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000])
  expect(waitMsOf(error({ 'x-should-retry': 'true' }), 1, 1)).toBe(375)
  const waitWith = (seconds: string) => waitMsOf(error({ 'x-should-retry': 'true', 'retry-after': seconds }), 1, 0)
  expect([waitWith('0'), waitWith('7'), waitWith('60'), waitWith('61')]).toEqual([0, 7_000, 60_000, undefined])
  // Never earlier than `retry-after`.
  expect(waitMsOf(error({ 'x-should-retry': 'true', 'retry-after': '7' }), 1, 0.9)).toBeGreaterThan(7_000)
  // Only a proxy sends a date.
  expect(waitWith('Wed, 21 Oct 2026 07:28:00 GMT')).toBe(500)
  expect(waitMsOf(new TypeError('a bug'), 1)).toBeUndefined()
})

test('a time-out and a lost connection name the request and the idempotency key for finding out what happened', async () => {
  const { midmonth, log } = await serve(['hang'], { timeoutMs: 50, retriesMax: 1 })
  const error = (await failureOf(
    midmonth.withdrawals.complete({ withdrawalIntentId: 'wi_1' }, { idempotencyKey: 'k-1' }),
  )) as TimeoutError
  expect(error).toBeInstanceOf(TimeoutError)
  expect(error).toBeInstanceOf(ConnectionError)
  expect(error.idempotencyKey).toBe('k-1')
  expect(error.message).toBe(`No response within 50 ms (request ${error.requestId})`)
  expect(log.map(each => each.error)).toEqual(['TimeoutError', 'TimeoutError'])

  const nowhere = new Midmonth({ apiKey, baseUrl: 'http://127.0.0.1:1', retriesMax: 0 })
  const refused = (await failureOf(nowhere.members.get('mem_1'))) as ConnectionError
  expect(refused.message).toMatch(/^No response from http:\/\/127\.0\.0\.1:1: .+ \(request [0-9a-f-]{36}\)$/)
})

test('a response that is not JSON counts as a lost connection, not as a result', async () => {
  const { midmonth } = await serve([{ body: '<html>Please log in' }], { retriesMax: 0 })
  const error = await failureOf(midmonth.members.get('mem_1'))
  expect(error).toBeInstanceOf(ConnectionError)
  expect((error as Error).message).toContain('the response is not JSON')
})

test.each(['in flight', 'between attempts', 'before the first'])('a signal stops a call that is %s', async when => {
  const { midmonth, requests } = await serve([
    when === 'in flight' ? 'hang' : { ...conflict, headers: { 'x-should-retry': 'true', 'retry-after': '60' } },
  ])
  const controller = new AbortController()
  const reason = new Error('The user has left')
  if (when === 'before the first') controller.abort(reason)
  const call = failureOf(midmonth.members.get('mem_1', { signal: controller.signal }))
  if (when !== 'before the first') await expect.poll(() => requests.length).toBe(1)
  controller.abort(reason)
  expect(await call).toBe(reason)
  expect(requests).toHaveLength(when === 'before the first' ? 0 : 1)
})

test('each code has a class with issues, status, request id and the fields of the code', async () => {
  const { midmonth } = await serve([
    {
      status: 422,
      headers: { 'x-should-retry': 'false' },
      body: issue('MemberInsufficientFunds', { memberId: 'mem_1' }),
    },
  ])
  const quote = { memberId: 'mem_1', amount: gbp('50.00') } as const
  const error = await failureOf(midmonth.withdrawals.createIntent(quote))
  if (!(error instanceof MemberInsufficientFundsError)) return expect.fail('The error has another class')
  expect(error).toBeInstanceOf(ApiError)
  expect(error).toBeInstanceOf(MidmonthError)
  expect(error).toMatchObject({
    name: 'MemberInsufficientFundsError',
    code: 'MemberInsufficientFunds',
    status: 422,
    shouldRetry: false,
  })
  expect(error.issues[0]?.memberId).toBe('mem_1')
  expect(error.message).toBe(
    `It is MemberInsufficientFunds. (MemberInsufficientFunds, HTTP 422, request ${error.requestId})`,
  )
})

test('every error has a class: with several issues, an unknown code, or a proxy’s page', async () => {
  const issues = Array.from({ length: 5 }, (_, row) => ({ code: 'FileContent', message: `Row ${row}`, row: `${row}` }))
  const { midmonth } = await serve(
    [
      { status: 400, body: { issues } },
      { status: 422, body: issue('MemberTooTired') },
      { status: 502, headers: { 'x-should-retry': 'false' }, body: '<html>' },
      { status: 500, headers: { 'x-should-retry': 'false' }, body: issue('InternalServerError') },
    ],
    { retriesMax: 0 },
  )
  const next = () => failureOf(midmonth.members.get('mem_1'))
  expect((await next()) as Error).toMatchObject({
    name: 'FileContentError',
    message: expect.stringMatching(/^Row 0; Row 1; Row 2; and 2 more \(FileContent, HTTP 400, request .+\)$/),
  })
  const unknown = (await next()) as ApiError
  expect(unknown.constructor).toBe(ApiError)
  expect(unknown).toMatchObject({ name: 'MemberTooTiredError', code: 'MemberTooTired', status: 422 })
  expect((await next()) as Error).toMatchObject({
    issues: [],
    message: expect.stringMatching(/^The response is not from Midmonth \(HTTP 502, request .+\)$/),
  })
  expect(await next()).toBeInstanceOf(InternalServerError)
})

test('neither the log, errors nor a printed client show the key, and the log contains no query', async () => {
  const { midmonth, log } = await serve([conflict, { body: { members: [], total: 0, skip: 0, take: 50 } }])
  await midmonth.members.list({ emails: ['sam.okafor@example.com'] })
  expect(log).toEqual([
    expect.objectContaining({ method: 'GET', path: '/v1/members', attempt: 1, status: 409, error: 'ConflictError' }),
    expect.objectContaining({ method: 'GET', path: '/v1/members', attempt: 2, status: 200 }),
  ])
  expect(log[0]?.retryInMs).toBeGreaterThanOrEqual(0)
  const refused = await failureOf(new Midmonth({ apiKey, baseUrl: 'http://127.0.0.1:1', retriesMax: 0 }).tiers.list())
  const shown = inspect([log, refused, midmonth], { depth: 10, showHidden: true }) + JSON.stringify(midmonth)
  expect(shown).not.toContain(apiKey)
  expect(JSON.stringify(log)).not.toContain('sam.okafor')
  expect(() => new Midmonth({ apiKey: 'mm_test_1\n', baseUrl: 'http://127.0.0.1:1' })).toThrow(/^apiKey/)
})

test('withResponse returns the body with status, headers, request id and whether it is a replay', async () => {
  const { midmonth } = await serve([{ status: 201, headers: { 'idempotency-replayed': 'true' }, ...paid }])
  const answer = await midmonth.withdrawals.complete({ withdrawalIntentId: 'wi_1' }).withResponse()
  expect(answer).toMatchObject({ ...paid, status: 201, attempts: 1, isReplayed: true })
  expect(answer.headers.get('idempotency-replayed')).toBe('true')
  expect(answer.requestId).toMatch(/^[0-9a-f-]{36}$/)
})

test('a failed call rejects once, whether it is awaited, iterated or used with withResponse', async () => {
  const { midmonth } = await serve([{ status: 403, body: issue('Forbidden') }])
  const unhandled: unknown[] = []
  const note = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', note)
  try {
    await failureOf(midmonth.members.get('mem_1'))
    await failureOf(midmonth.members.get('mem_1').withResponse())
    await failureOf(midmonth.members.list().pages().next())
    await midmonth.members
      .get('mem_1')
      .finally(() => undefined)
      .catch(() => undefined)
    await new Promise(resolve => setImmediate(resolve))
    expect(unhandled).toEqual([])
  } finally {
    process.off('unhandledRejection', note)
  }
})

test('an id that would lead to another operation is rejected before anything is sent', async () => {
  const { midmonth, requests } = await serve([{}])
  for (const id of ['', '.', '..', undefined, 17]) {
    expect(() => midmonth.members.get(id as 'mem_1')).toThrow('memberId must be an id')
  }
  await midmonth.members.get('mem_/../jobs?x' as 'mem_1')
  expect(requests.map(({ url }) => url)).toEqual(['/v1/members/mem_%2F..%2Fjobs%3Fx'])
})

test('a key or header that HTTP cannot carry is rejected before anything is sent', async () => {
  const { midmonth, requests } = await serve([paid])
  const complete = (options: object) => midmonth.withdrawals.complete({ withdrawalIntentId: 'wi_1' }, options)
  expect(await failureOf(complete({ idempotencyKey: 'Lohnlauf №1' }))).toBeInstanceOf(TypeError)
  expect(await failureOf(complete({ headers: { 'x-note': 'a\nb' } }))).toBeInstanceOf(TypeError)
  expect(requests).toEqual([])
})

test('the user agent contains the version of the package', async () => {
  const { midmonth, requests } = await serve([{}])
  await midmonth.tiers.list()
  const { default: manifest } = await import('../package.json', { with: { type: 'json' } })
  expect(requests[0]?.headers['user-agent']).toBe(`midmonth-sdk/${manifest.version}`)
  expect(requests[0]?.headers.prefer).toBe('return=representation')
})
