import { once } from 'node:events'
import net from 'node:net'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { exampleIssue } from '../../contract/refusals.ts'
import { createServer } from '../server/create-server.ts'
import type { App } from '../server/server.ts'
import { acceptUploads } from './upload.ts'
import { UploadedFile } from './uploaded-file.ts'

let harness: Harness
let app: App
let port: number
const logged: string[] = []

beforeAll(async () => {
  harness = await startHarness()
  const log = pino({ level: 'warn' }, { write: line => logged.push(line) })
  const limits = { arrivalMsMax: 150, closingArrivalMsMax: 150, checkEveryMs: 20 }
  app = createServer(
    { db: harness.db, log, now: harness.clock.now, mode: harness.mode, sealer: harness.sealer },
    limits,
  )
  app.post('/v1/things', { config: { scope: 'any' } }, async request => ({ got: request.body }))
  app.register(async (scope: App) => {
    acceptUploads(scope)
    const config = { scope: 'any' } as const
    const bytesOf = (file: unknown) => ({ bytes: file instanceof UploadedFile ? file.bytes : undefined })
    scope.post('/v1/lists', { config }, async request => bytesOf(request.body))
    scope.post('/v1/hurried', { config: { ...config, arrivalMsMax: 150 } }, async request => bytesOf(request.body))
  })
  port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port)
})
afterAll(async () => {
  await app.close()
  await harness.stop()
})

/** Sends a request with only the beginning of its body. `answered` resolves to everything received until the connection closes. */
function begin(
  path: string,
  { type = 'application/json', length = '30', key = harness.key, connection = 'close', to = port } = {},
) {
  const framing = length === 'chunked' ? 'Transfer-Encoding: chunked\r\n\r\n' : `Content-Length: ${length}\r\n\r\n{`
  const socket = net.connect({ host: '127.0.0.1', port: to })
  // The connection may also be reset; the test only needs it to close.
  socket.on('error', () => {})
  socket.setEncoding('utf8')
  let text = ''
  socket.on('data', chunk => {
    text += chunk
  })
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\nConnection: ${connection}\r\nContent-Type: ${type}\r\n${framing}`,
  )
  return { socket, answered: once(socket, 'close').then(() => text) }
}

test.each([
  ['a body', '/v1/things', 'application/json'],
  ['a file that is slower than its route allows', '/v1/hurried', 'text/csv'],
])('%s that does not arrive in time gets a 408, and the connection is closed', async (_, path, type) => {
  const answer = await begin(path, { type }).answered
  expect(answer).toMatch(/^HTTP\/1\.1 408 /)
  expect(answer.toLowerCase()).toContain('content-type: application/json; charset=utf-8\r\n')
  expect(answer.toLowerCase()).toContain('x-request-id: req_')
  const [, body = ''] = answer.split('\r\n\r\n')
  expect(JSON.parse(body).issues).toEqual([exampleIssue('RequestTimeout')])
})

test('a file may take longer than an ordinary body', async () => {
  const upload = begin('/v1/lists', { type: 'text/csv', length: '4' })
  // Wait until an ordinary body that began later has timed out.
  await begin('/v1/things').answered
  upload.socket.write('a\r\n')
  expect(await upload.answered).toMatch(/^HTTP\/1\.1 200 [\s\S]*{"bytes":4}$/)
})

test.each([
  ['/v1/things', 'application/json'],
  ['/v1/lists', 'text/csv'],
])('%s does not wait for a caller that closes in the middle of the body', async (path, type) => {
  const { socket, answered } = begin(path, { type })
  socket.end()
  expect(await answered).toMatch(/^(HTTP\/1\.1 400 [\s\S]*ended early.*)?$/)
})

test('a body with malformed chunks is refused immediately', async () => {
  const { socket, answered } = begin('/v1/things', { length: 'chunked' })
  socket.write('1\r\n{\r\nthis is not a length\r\n')
  expect(await answered).toMatch(/^HTTP\/1\.1 400 /)
})

test('a request that is refused before its body is read is also cut off', async () => {
  const answer = await begin('/v1/things', { key: 'unknown', connection: 'keep-alive' }).answered
  expect(answer).toMatch(/^HTTP\/1\.1 401 /)
})

test('bodies that arrive in time are accepted, one after the other on one connection', async () => {
  const { socket, answered } = begin('/v1/things', { length: '2', connection: 'keep-alive' })
  socket.write(
    `}POST /v1/things HTTP/1.1\r\nHost: x\r\nx-api-key: ${harness.key}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`,
  )
  expect((await answered).match(/{"got":{}}/g)).toHaveLength(2)
})

test('when the service stops, endless bodies are cut off', async () => {
  const second = createServer(
    {
      db: harness.db,
      log: pino({ level: 'silent' }),
      now: harness.clock.now,
      mode: harness.mode,
      sealer: harness.sealer,
    },
    { arrivalMsMax: 60_000, closingArrivalMsMax: 50, checkEveryMs: 20 },
  )
  let heads = 0
  second.addHook('onRequest', async () => {
    heads += 1
  })
  second.post('/v1/things', { config: { scope: 'any' } }, async request => ({ got: request.body }))
  second.register(async (scope: App) => {
    acceptUploads(scope)
    scope.post('/v1/lists', { config: { scope: 'any' } }, async () => ({}))
  })
  const there = Number(new URL(await second.listen({ host: '127.0.0.1', port: 0 })).port)
  const thing = begin('/v1/things', { connection: 'keep-alive', to: there })
  const list = begin('/v1/lists', { type: 'text/csv', length: 'chunked', connection: 'keep-alive', to: there })
  const endless = setInterval(() => list.socket.write('4\r\na,b\n\r\n'), 5)
  await expect.poll(() => heads).toBe(2)
  await second.close()
  clearInterval(endless)
  for (const { answered } of [thing, list])
    expect(await answered).toMatch(/^HTTP\/1\.1 503 [\s\S]*The service is stopping/)
})

test('no late body logs a warning or an error', () => {
  expect(logged).toEqual([])
})
