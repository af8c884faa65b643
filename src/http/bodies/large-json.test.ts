import { once } from 'node:events'
import net from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { extent } from '../../../test/runner/extent.ts'

let harness: Harness
let port: number
beforeAll(async () => {
  harness = await startHarness()
  port = Number(new URL(await harness.app.listen({ host: '127.0.0.1', port: 0 })).port)
})
afterAll(() => harness.stop())

const megabyte = 1024 * 1024
/** The limit of a body, or an eighth of it. */
const upTo = (bytes: number) => bytes / extent({ short: 8, long: 1 })
const lineOf = (memberId: string, amount = 100) => ({ memberId, money: { amount, currency: 'GBP' } })
const run = (raw: string, headers: Record<string, string> = {}) => harness.call('POST', '/v1/pay/run', { raw, headers })
/** Enough entries to fill a list of this size. */
const filled = (entry: string, bytes: number) =>
  Array(Math.floor(bytes / (entry.length + 1)))
    .fill(entry)
    .join()

describe('a large body', () => {
  test('is read like a small one', async () => {
    const memberId = await harness.addMember()
    const payDetails = Array.from({ length: 3_000 }, (_, index) => lineOf(memberId, index + 1))
    const { status, text } = await run(JSON.stringify({ payDetails }))
    expect([status, text]).toEqual([201, expect.any(String)])
    const balance = await harness.call('GET', `/v1/pay/members/${memberId}/balance`)
    expect(balance.body.available.amount).toBe((3_000 * 3_001) / 2)
  })

  test('is the same idempotent request as the same JSON in a small body', async () => {
    const memberId = await harness.addMember()
    const { memberId: _, money } = lineOf(memberId)
    const small = JSON.stringify({ payDetails: [{ memberId, money }] })
    const large = `{"payDetails":[${' '.repeat(100_000)}{"money":${JSON.stringify(money)},"memberId":"${memberId}"}]}`
    const headers = { 'x-idempotency-key': 'small-and-large' }
    const first = await run(small, headers)
    expect(first.status).toBe(201)
    const again = await run(large, headers)
    expect([again.status, again.text, again.headers['idempotency-replayed']]).toEqual([201, first.text, 'true'])
    expect((await run(large.replace('100', '101'), headers)).status).toBe(422)
  })

  test('has its faults reported with their path, even near the end', async () => {
    const memberId = await harness.addMember()
    const good = JSON.stringify(lineOf(memberId))
    const lines = Array(2_000).fill(good)
    lines[1_500] = good.replace('100', '1.5')
    lines[1_700] = good.replace('"amount":100', '"amount":100,"amount":1')
    const { status, body } = await run(`{"payDetails":[${lines.join()}]}`)
    expect(status).toBe(400)
    expect(body.issues.map(({ path }: { path: string }) => path)).toEqual([
      'payDetails.1700.money.amount',
      'payDetails.1500.money.amount',
    ])
  })

  test.each([
    ['not JSON', `{"payDetails":[${' '.repeat(100_000)}`, 'The body is not well-formed JSON'],
    ['not UTF-8', Buffer.concat([Buffer.alloc(100_000, ' '), Buffer.from([0xff])]), 'The body is not valid UTF-8'],
  ])('that is %s is refused like a small one', async (_, raw, message) => {
    const { status, body } = await harness.call('POST', '/v1/pay/run', { raw })
    expect([status, body.issues]).toEqual([400, [{ code: 'BadRequest', message }]])
  })

  test('is accepted by no operation without a list', async () => {
    const { status, body } = await harness.call('POST', '/v1/members', { raw: ' '.repeat(70_000) })
    expect([status, body.issues[0].message]).toEqual([413, 'The body must not exceed 65536 bytes'])
  })
})

describe('a hostile body', () => {
  const settlement = () => `/v1/pay/cycles/${harness.payCycle.id}/settlement`
  const hostile: [name: string, path: () => string, body: () => string][] = [
    ['pay run of empty lines', () => '/v1/pay/run', () => `{"payDetails":[${filled('{}', 2 * megabyte)}]}`],
    [
      'pay run of empty lines, just short of its limit',
      () => '/v1/pay/run',
      () => `{"payDetails":[${Array(9_999).fill('{}').join()}]}`,
    ],
    ['small pay run of empty lines', () => '/v1/pay/run', () => `{"payDetails":[${filled('{}', 65_000)}]}`],
    ['small pay run of numbers', () => '/v1/pay/run', () => `{"payDetails":[${filled('1', 65_000)}]}`],
    ['pay run of brackets', () => '/v1/pay/run', () => '['.repeat(upTo(16 * megabyte) - 1)],
    [
      'job of empty actions',
      () => '/v1/members/jobs',
      () => `{"actions":[${filled('{}', upTo(16 * megabyte) - 100)}]}`,
    ],
    [
      'job of actions with only a type',
      () => '/v1/members/jobs',
      () => `{"actions":[${Array(10_000).fill('{"type":"Add"}').join()}]}`,
    ],
    [
      'job of one long e-mail',
      () => '/v1/members/jobs',
      () => `{"actions":[{"type":"Add","email":"${'a.'.repeat(upTo(8_000_000))}@"}]}`,
    ],
    [
      'job with a million fields',
      () => '/v1/members/jobs',
      () => `{"actions":[{${Array.from({ length: upTo(1_000_000) }, (_, index) => `"a${index}":1`).join()}}]}`,
    ],
    ['settlement of empty lines', settlement, () => `{"deductions":[${filled('{}', upTo(32 * megabyte) - 100)}]}`],
    ['settlement of numbers', settlement, () => `{"deductions":[${filled('1', upTo(32 * megabyte) - 100)}]}`],
    ['settlement of one string', settlement, () => `{"deductions":"${'x'.repeat(upTo(32 * megabyte) - 100)}"}`],
    ['settlement of escapes', settlement, () => `{"deductions":["${'\\u0000'.repeat(upTo(5 * megabyte))}"]}`],
  ]

  test.each(hostile)('(%s) is refused with few issues, while others are served', async (_, path, body) => {
    const raw = body()
    // Called before the measurement, because creating the body also takes time.
    await harness.call('GET', '/v1/tiers')
    const delay = monitorEventLoopDelay({ resolution: 2 })
    delay.enable()
    const { status, body: answer, text } = await harness.call('POST', path(), { raw })
    delay.disable()
    expect(status).toBe(400)
    expect(answer.issues.length).toBeLessThanOrEqual(101)
    expect(text.length).toBeLessThan(100_000)
    // 50 ms on an idle machine; the caller is on the same thread here.
    expect(delay.max / 1e6).toBeLessThan(500)
  })

  test('has a list that is too long refused before its entries are checked', async () => {
    const { body } = await run(`{"payDetails":[${Array(100_001).fill('{}').join()}]}`)
    expect(body.issues).toEqual([
      { code: 'BodyValidation', path: 'payDetails', message: expect.stringMatching(/more than/) },
    ])
  })

  test('has its first hundred faults listed, and a last issue that says there are more', async () => {
    for (const count of [51, 5_000]) {
      const { body } = await run(`{"payDetails":[${Array(count).fill('{}').join()}]}`)
      expect(body.issues).toHaveLength(101)
      expect(body.issues.slice(0, 2).map(({ path }: { path: string }) => path)).toEqual([
        'payDetails.0.memberId',
        'payDetails.0.money',
      ])
      expect(body.issues[100]).toEqual({
        code: 'BodyValidation',
        path: 'payDetails.50.memberId',
        message: 'and more; fix these issues first',
      })
    }
    expect((await run(`{"payDetails":[${Array(50).fill('{}').join()}]}`)).body.issues).toHaveLength(100)
  })
})

describe('bodies that do not arrive', () => {
  /** Sends the head of a request and part of its body; `status` is the response's. */
  function begin({
    key = harness.key,
    length = 15 * megabyte,
    chunk,
  }: {
    key?: string
    length?: number
    chunk?: Buffer
  }) {
    const socket = net.connect({ host: '127.0.0.1', port })
    socket.on('error', () => undefined)
    const framing = chunk === undefined ? `Content-Length: ${length}` : 'Transfer-Encoding: chunked'
    socket.write(
      `POST /v1/pay/run HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`,
    )
    if (chunk !== undefined) socket.write(Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk]))
    return { socket, answer: once(socket.setEncoding('latin1'), 'data').then(([text]) => String(text)) }
  }

  async function end(begun: { socket: net.Socket }[]): Promise<void> {
    await Promise.all(
      begun.map(async ({ socket }) => {
        // The service has closed a refused connection.
        if (socket.closed) return
        const closed = once(socket, 'close')
        socket.destroy()
        await closed
      }),
    )
  }

  const small = async (key: string) => (await harness.call('POST', '/v1/pay/run', { key, raw: '{}' })).status
  const large = async (key: string) =>
    (await harness.call('POST', '/v1/pay/run', { key, raw: `{${' '.repeat(100_000)}}` })).status

  test('count by their declared length, and beyond the budget the next one gets a retry-after', async () => {
    const begun = Array.from({ length: 4 }, () => begin({}))
    const refused = await Promise.race(begun.map(({ answer }) => answer))
    expect(refused).toMatch(/^HTTP\/1\.1 503 [\s\S]*retry-after: 2\r\n/)
    // The partner's other requests, and other partners, are served.
    expect(await small(harness.key)).toBe(400)
    expect(await large(harness.other.key)).toBe(400)
    await end(begun)
    const again = begin({})
    await expect.poll(() => large(harness.key)).toBe(400)
    again.socket.write(Buffer.alloc(15 * megabyte, ' '))
    expect(await again.answer).toMatch(/^HTTP\/1\.1 400 /)
    await end([again])
  })

  test('count as they arrive if they declare no length', async () => {
    const chunk = Buffer.alloc(15 * megabyte, ' ')
    const begun = Array.from({ length: 5 }, () => begin({ chunk }))
    expect(await Promise.race(begun.map(({ answer }) => answer))).toMatch(/^HTTP\/1\.1 503 /)
    await end(begun)
    await expect.poll(() => large(harness.key)).toBe(400)
  })
})
