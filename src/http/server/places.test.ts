import { once } from 'node:events'
import net from 'node:net'
import pino from 'pino'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
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
    { places: { waitMsMax: 60_000, ...places }, ...overrides },
  )
  const held = Promise.withResolvers<void>()
  release = held.resolve
  started = 0
  const config = { scope: 'any' } as const
  app.get('/v1/held', { config }, async () => {
    started += 1
    await held.promise
    return {}
  })
  app.get('/v1/quick', { config }, async () => ({}))
  app.post('/v1/quick', { config }, async () => ({}))
  address = await app.listen({ host: '127.0.0.1', port: 0 })
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

test('a caller who gives up frees its place, and its place in the queue', async () => {
  await listen({ placesMax: 1 })
  await get('/v1/quick')
  const callers = times(3, () => {
    const caller = net.connect({ host: '127.0.0.1', port: Number(new URL(address).port) })
    caller.write(`GET /v1/held HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\n\r\n`)
    return caller
  })
  await expect.poll(() => started).toBe(1)
  for (const caller of callers) caller.destroy()
  expect((await get('/v1/quick')).status).toBe(200)
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
