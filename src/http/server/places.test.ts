import { once } from 'node:events'
import net from 'node:net'
import pino from 'pino'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { sql } from '../../database/database.ts'
import { newSecret } from '../../partners/api-keys.ts'
import { createServer } from './create-server.ts'
import type { App } from './server.ts'

let harness: Harness
let other: string
beforeAll(async () => {
  harness = await startHarness()
  other = (await harness.addPartner('Other')).key
})
afterAll(() => harness.stop())

let app: App
let address: string
let started: number
let release: () => void
afterEach(async () => {
  release()
  await app.close()
})

type Overrides = NonNullable<Parameters<typeof createServer>[1]>

/** Serves `/v1/held`, which responds when the test says so, and `/v1/quick`. */
async function listen(places: Overrides['places'], overrides: Overrides = {}): Promise<void> {
  const { db, mode, sealer, clock } = harness
  const log = pino({ level: 'silent' })
  app = createServer(
    { db, log, now: clock.now, mode, sealer },
    { places: { waitMsMax: 60_000, unbatchedPlaces: 1, ...places }, ...overrides },
  )
  const held = Promise.withResolvers<void>()
  release = held.resolve
  started = 0
  const config = { scope: 'any' } as const
  const hold = async () => {
    started += 1
    await held.promise
    return {}
  }
  app.get('/v1/held', { config }, hold)
  app.get('/v1/batched', { config: { ...config, isBatched: true } }, hold)
  app.get('/v1/large', { config }, async () => 'x'.repeat(64 * 1024 * 1024))
  app.get('/v1/quick', { config }, async () => ({}))
  app.post('/v1/quick', { config }, async () => ({}))
  address = await app.listen({ host: '127.0.0.1', port: 0 })
}

/** Counts the requests that arrive from now on. */
function countArrivals(): () => number {
  let count = 0
  app.server.on('request', () => {
    count += 1
  })
  return () => count
}

const get = (path: string, key = harness.key) => fetch(`${address}${path}`, { headers: { 'x-api-key': key } })
const times = <T>(count: number, work: () => T) => Array.from({ length: count }, work)
const statusesOf = async (responses: Promise<Response>[]) => (await Promise.all(responses)).map(({ status }) => status)

test('requests beyond the places wait, and are served as places become free', async () => {
  await listen({ placesMax: 2 })
  await get('/v1/quick')
  const responses = times(5, () => get('/v1/held'))
  await expect.poll(() => started).toBe(2)
  release()
  expect(await statusesOf(responses)).toEqual([200, 200, 200, 200, 200])
})

test.for([
  ['takes several places if it holds a connection to the database', '/v1/held', 2],
  ['takes one place if it shares the statements of a batch', '/v1/batched', 4],
] as const)('a request %s', async ([, path, count]) => {
  await listen({ placesMax: 4, unbatchedPlaces: 2, waitMsMax: 100 })
  await get('/v1/quick')
  const responses = times(6, () => get(path))
  await expect.poll(() => started).toBe(count)
  // It came last, so the others have been refused by then.
  expect((await get('/v1/quick', other)).status).toBe(503)
  release()
  expect((await statusesOf(responses)).filter(status => status === 200).length).toBe(count)
})

test('a partner that fills its places delays only itself', async () => {
  await listen({ placesMax: 4, shareMax: 2 })
  expect((await get('/v1/quick', other)).status).toBe(200)
  const responses = times(5, () => get('/v1/held'))
  await expect.poll(() => started).toBe(2)
  expect((await get('/v1/quick', other)).status).toBe(200)
  expect(started).toBe(2)
  release()
  expect(await statusesOf(responses)).toEqual([200, 200, 200, 200, 200])
})

test('callers with unknown keys wait in a queue apart from those of partners', async () => {
  await listen({ othersMax: 1 })
  await get('/v1/quick')
  const strangers = times(10, () => get('/v1/quick', newSecret('sandbox')))
  expect((await get('/v1/quick')).status).toBe(200)
  expect(new Set(await statusesOf(strangers))).toEqual(new Set([401]))
})

test('a request that waits too long for a place is refused with a retry-after, and nothing of it was done', async () => {
  await listen({ placesMax: 1, waitMsMax: 100 })
  await get('/v1/quick')
  const held = get('/v1/held')
  await expect.poll(() => started).toBe(1)
  const refused = await get('/v1/held')
  expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('x-should-retry')]).toEqual([
    503,
    '1',
    'true',
  ])
  expect(await refused.json()).toMatchObject({ issues: [{ message: expect.stringContaining('nothing was done') }] })
  release()
  expect((await held).status).toBe(200)
  expect(started).toBe(1)
})

test('a caller who gives up leaves the queue, but keeps its place until its work is done', async () => {
  await listen({ placesMax: 1 })
  await get('/v1/quick')
  const callers = times(3, () => {
    const caller = net.connect({ host: '127.0.0.1', port: Number(new URL(address).port) })
    caller.write(`GET /v1/held HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\n\r\n`)
    return caller
  })
  await expect.poll(() => started).toBe(1)
  const arrived = countArrivals()
  for (const caller of callers) caller.destroy()
  const served = get('/v1/quick')
  await expect.poll(arrived).toBe(1)
  expect((await get('/v1/quick', 'hello')).status).toBe(401)
  expect(await Promise.race([served, 'waits'])).toBe('waits')
  release()
  expect((await served).status).toBe(200)
  expect(started).toBe(1)
})

test('a request keeps no place while its body arrives', async () => {
  await listen({ placesMax: 1 })
  await get('/v1/quick')
  const socket = net.connect({ host: '127.0.0.1', port: Number(new URL(address).port) })
  const head = `POST /v1/quick HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\nConnection: close\r\n`
  socket.write(`${head}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{`)
  await get('/v1/quick')
  await get('/v1/quick')
  let response = ''
  socket.setEncoding('latin1').on('data', text => {
    response += text
  })
  socket.write('}')
  await once(socket, 'close')
  expect(response).toMatch(/^HTTP\/1\.1 200 /)
})

test('the refusals of a flood are paced, so that others are served meanwhile, and all are sent', async () => {
  await listen({}, { refusalsPerSecond: 20 })
  const order: number[] = []
  const flood = times(8, async () => order.push((await get('/v1/quick', 'hello')).status))
  await Promise.race(flood)
  order.push((await get('/v1/quick')).status)
  await Promise.all(flood)
  expect(order.filter(status => status === 401)).toHaveLength(8)
  expect(order.at(-1)).toBe(401)
})

test('a response that its caller does not read keeps no place', async () => {
  await listen({ placesMax: 1 })
  await get('/v1/quick')
  const socket = net.connect({ host: '127.0.0.1', port: Number(new URL(address).port) })
  socket.write(`GET /v1/large HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\n\r\n`)
  await once(socket, 'readable')
  expect((await get('/v1/quick')).status).toBe(200)
  socket.destroy()
})

test('requests sent over one connection without awaiting responses are bounded, and all are answered', async () => {
  await listen({ placesMax: 1, waitingMax: 2 })
  await get('/v1/quick')
  const held = get('/v1/held')
  await expect.poll(() => started).toBe(1)
  const socket = net.connect({ host: '127.0.0.1', port: Number(new URL(address).port) })
  const request = (connection: string) =>
    `GET /v1/quick HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\nConnection: ${connection}\r\n\r\n`
  socket.write(request('keep-alive').repeat(4) + request('close'))
  let responses = ''
  socket.setEncoding('latin1').on('data', text => {
    responses += text
  })
  // By then, the five have arrived.
  await get('/v1/quick', 'hello')
  release()
  await once(socket, 'close')
  expect((await held).status).toBe(200)
  expect(responses.match(/HTTP\/1\.1 [0-9]{3}/g)?.toSorted()).toEqual([
    ...times(2, () => 'HTTP/1.1 200'),
    ...times(3, () => 'HTTP/1.1 503'),
  ])
})

test('a partner whose key is looked up again waits in its own queue', async () => {
  await listen({ placesMax: 1, othersMax: 1 })
  await get('/v1/quick')
  const locked = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  const locking = harness.ownerDb.transaction().execute(async tx => {
    await sql`lock table api_keys in access exclusive mode`.execute(tx)
    locked.resolve()
    await answered.promise
  })
  await locked.promise
  // The earlier lookup is no longer recent, and the next one does not end.
  harness.clock.advance({ seconds: 1 })
  const arrived = countArrivals()
  const waiting = times(3, async () => (await get('/v1/quick')).status)
  await expect.poll(arrived).toBe(3)
  expect(await Promise.race([...waiting, get('/v1/quick', 'hello').then(({ status }) => status)])).toBe(401)
  answered.resolve()
  await locking
  expect(await Promise.all(waiting)).toEqual([200, 200, 200])
})

test('during a stop, refusals do not wait for their turn', async () => {
  await listen({}, { refusalsPerSecond: 20, closingArrivalMsMax: 50, checkEveryMs: 20 })
  await get('/v1/quick')
  const arrived = countArrivals()
  const head = `POST /v1/quick HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\nConnection: close\r\n`
  const responses = times(5, async () => {
    const socket = net.connect({ host: '127.0.0.1', port: Number(new URL(address).port) })
    // The body never arrives whole, so it is refused because the service stops.
    socket.write(`${head}Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{`)
    let text = ''
    for await (const chunk of socket) text += chunk
    return text.slice(0, 12)
  })
  await expect.poll(arrived).toBe(5)
  await app.close()
  expect(await Promise.all(responses)).toEqual(times(5, () => 'HTTP/1.1 503'))
})
