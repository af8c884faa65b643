import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { connect } from '../../database/connect.ts'
import { newSecret } from '../../partners/api-keys.ts'
import { createServer } from '../server/create-server.ts'
import type { App } from '../server/server.ts'

let harness: Harness
let open: App
let behindProxy: App
const logged: { msg: string; status: number; address?: string }[] = []

beforeAll(async () => {
  harness = await startHarness()
  const log = pino({ level: 'info' }, { write: line => logged.push(JSON.parse(line)) })
  const { db, mode, clock, sealer } = harness
  const start = (trustedProxies: string) => {
    const app = createServer({ db, log, now: clock.now, mode, sealer, trustedProxies })
    app.get('/v1/things', { config: { scope: 'any' } }, async () => ({}))
    return app
  }
  open = start('')
  behindProxy = start('127.0.0.1')
})
afterAll(async () => {
  await open.close()
  await behindProxy.close()
  await harness.stop()
})

const ask = (key: string, { app = open, from = '192.0.2.1', headers = {} } = {}) =>
  app.inject({ method: 'GET', url: '/v1/things', remoteAddress: from, headers: { 'x-api-key': key, ...headers } })

/** The statuses that a client gets for guessing this many keys. */
async function forge(count: number, options: Parameters<typeof ask>[1]): Promise<number[]> {
  const statuses: number[] = []
  for (let index = 0; index < count; index++) statuses.push((await ask(newSecret('sandbox'), options)).statusCode)
  return statuses
}

const burst = Array(20).fill(401)

test('an address that guesses keys is refused with 429 and a retry-after', async () => {
  const from = '192.0.2.10'
  expect(await forge(22, { from })).toEqual([...burst, 429, 429])
  const refused = await ask(newSecret('sandbox'), { from })
  expect(refused.json().issues).toEqual([{ code: 'RateLimitExceeded', message: expect.any(String) }])
  harness.clock.advance({ seconds: Number(refused.headers['retry-after']) })
  expect(await forge(1, { from })).toEqual([401])
})

test('guessed keys block neither a key in use at the same address nor keys at other addresses', async () => {
  const from = '192.0.2.20'
  expect((await ask(harness.key, { from })).statusCode).toBe(200)
  await forge(21, { from })
  harness.clock.advance({ seconds: 1 })
  await forge(21, { from })
  // The cached lookup is more than a second old, so the key is looked up again.
  expect((await ask(harness.key, { from })).statusCode).toBe(200)
  const { secret } = await harness.addKey(['pay:read'])
  expect((await ask(secret, { from })).statusCode).toBe(429)
  expect((await ask(secret, { from: '192.0.2.21' })).statusCode).toBe(200)
})

test('guessing keys over many concurrent connections is not faster than over one', async () => {
  const from = '192.0.2.25'
  const statuses = await Promise.all(
    Array.from({ length: 100 }, async () => (await ask(newSecret('sandbox'), { from })).statusCode),
  )
  expect(statuses.filter(status => status === 401)).toHaveLength(20)
  expect(statuses.filter(status => status === 429)).toHaveLength(80)
})

test('any number of valid keys from one address, first used at the same time, are accepted', async () => {
  const from = '192.0.2.26'
  const secrets: string[] = []
  for (let index = 0; index < 50; index++) secrets.push((await harness.addKey(['pay:read'])).secret)
  const answers = await Promise.all([...secrets, ...secrets].map(key => ask(key, { from })))
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(100).fill(200))
})

test('a client that repeats one unknown key always gets 401', async () => {
  const from = '192.0.2.30'
  const key = newSecret('sandbox')
  for (let index = 0; index < 60; index++) {
    expect((await ask(key, { from })).statusCode).toBe(401)
    if (index % 10 === 9) harness.clock.advance({ seconds: 1 })
  }
})

test('a key with a wrong checksum, or of the other mode, is refused without a query', async () => {
  const log = pino({ level: 'silent' })
  const { db, close } = connect({ host: '/nowhere', user: 'x', database: 'x' }, { log })
  const app = createServer({ db, log, now: harness.clock.now, mode: 'sandbox', sealer: harness.sealer })
  app.get('/v1/things', { config: { scope: 'any' } }, async () => ({}))
  const good = newSecret('sandbox')
  const bad = `${good.slice(0, -1)}${good.endsWith('0') ? '1' : '0'}`
  expect((await ask(bad, { app })).statusCode).toBe(401)
  expect((await ask(newSecret('live'), { app })).statusCode).toBe(401)
  expect((await ask(good, { app })).statusCode).toBe(503)
  await app.close()
  await close()
})

test('all addresses of an IPv6 /64 share one limit', async () => {
  expect(await forge(20, { from: '2001:db8:1:2::1' })).toEqual(burst)
  expect(await forge(1, { from: '2001:db8:1:2:ffff::9' })).toEqual([429])
  expect(await forge(1, { from: '2001:db8:1:3::1' })).toEqual([401])
})

test('the log has the address of a caller only if its key was refused', async () => {
  logged.length = 0
  await ask(newSecret('sandbox'), { from: '192.0.2.40' })
  await ask('hello', { from: '192.0.2.41' })
  await ask(harness.key, { from: '192.0.2.42' })
  expect(logged.map(({ status, address }) => [status, address])).toEqual([
    [401, '192.0.2.40'],
    [401, '192.0.2.41'],
    [200, undefined],
  ])
})

test('the client address comes from x-forwarded-for only behind a trusted proxy', async () => {
  const forwarded = (address: string) => ({ headers: { 'x-forwarded-for': address } })
  const proxied = (address: string) => ({ app: behindProxy, from: '127.0.0.1', ...forwarded(address) })
  expect(await forge(21, proxied('198.51.100.1'))).toEqual([...burst, 429])
  expect(await forge(1, proxied('198.51.100.2'))).toEqual([401])
  // The part of the header that the caller sent is not trusted.
  expect(await forge(1, proxied('198.51.100.3, 198.51.100.1'))).toEqual([429])
  const direct = (address: string) => ({ app: behindProxy, from: '192.0.2.50', ...forwarded(address) })
  expect(await forge(20, direct('198.51.100.4'))).toEqual(burst)
  expect(await forge(1, direct('198.51.100.5'))).toEqual([429])
  const ignored = (address: string) => ({ from: '192.0.2.60', ...forwarded(address) })
  expect(await forge(20, ignored('198.51.100.6'))).toEqual(burst)
  expect(await forge(1, ignored('198.51.100.7'))).toEqual([429])
})
