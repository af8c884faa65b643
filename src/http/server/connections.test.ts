import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import pino from 'pino'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { createServer } from './create-server.ts'
import type { App } from './server.ts'
import { sendStaticFile, staticFile } from './static-file.ts'

const large = 8 * 1024 * 1024
const limits = { checkEveryMs: 20, headersMsMax: 300, unsentMsMax: 300, connectionsMax: 3, refusedConnectionsMax: 2 }

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

let app: App
let sockets: net.Socket[] = []
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  sockets = []
  await app.close()
})

/** Serves a response too large for the kernel's buffer, and a stream of many chunks. */
async function listen(overrides: Partial<typeof limits> = {}): Promise<{ port: number; accepted: net.Socket[] }> {
  const log = pino({ level: 'silent' })
  app = createServer(
    { db: harness.db, log, now: harness.clock.now, mode: harness.mode, sealer: harness.sealer },
    { ...limits, ...overrides },
  )
  const file = await staticFile('text/plain', Buffer.alloc(large))
  app.get('/file', async (request, reply) => sendStaticFile(request, reply, { file, cacheControl: 'no-cache' }))
  app.get('/livez', async () => ({ status: 'ok' }))
  const accepted: net.Socket[] = []
  app.server.on('connection', socket => accepted.push(socket))
  const port = Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port)
  return { port, accepted }
}

function connect(port: number): net.Socket {
  const socket = net.connect({ host: '127.0.0.1', port })
  socket.on('error', () => {})
  sockets.push(socket)
  return socket
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`

/** Reads until the end of the response or of the connection. */
async function answerOf(socket: net.Socket): Promise<string> {
  let text = ''
  socket.setEncoding('latin1').on('data', chunk => {
    text += chunk
  })
  while (!/\r\n\r\n.*[}]/s.test(text) && !socket.closed)
    await Promise.race([once(socket, 'data'), once(socket, 'close')])
  return text
}

test('a request that never ends is cut off with a response', async () => {
  const { port } = await listen()
  const socket = connect(port)
  socket.write('POST /v1/pay/withdrawals/intent HTTP/1.1\r\nHost: x\r\nContent-Le')
  const [head = '', body = ''] = (await answerOf(socket)).split('\r\n\r\n')
  expect(head).toMatch(/^HTTP\/1\.1 408 /)
  expect(head.toLowerCase()).toContain('x-should-retry: true')
  expect(JSON.parse(body).issues[0].code).toBe('BadRequest')
})

test('a client that does not read its responses is cut off, and its memory is bounded', async () => {
  const { port, accepted } = await listen()
  const socket = connect(port)
  socket.pause()
  socket.write(get('/file').repeat(100))
  await until(() => accepted[0] !== undefined && accepted[0].writableLength > 0)
  const [served] = accepted
  await once(served as net.Socket, 'close')
  // Only one of the hundred responses was begun.
  expect(served?.bytesWritten).toBeLessThan(2 * large)
})

test('a client that reads a little now and then is also cut off', async () => {
  const { port, accepted } = await listen()
  const socket = connect(port)
  socket.pause()
  socket.write(get('/file'))
  await until(() => (accepted[0]?.writableLength ?? 0) > 0)
  const drip = setInterval(() => socket.read(1), 10)
  await once(accepted[0] as net.Socket, 'close')
  clearInterval(drip)
  expect(socket.bytesRead).toBeLessThan(large)
})

test('a client that reads gets its whole response', async () => {
  const { port } = await listen()
  const body = await (await fetch(`http://127.0.0.1:${port}/file`)).arrayBuffer()
  expect(body.byteLength).toBe(large)
})

test('connections beyond the limit are refused in the contract’s shape, and accepted again once others have closed', async () => {
  const { port, accepted } = await listen()
  const first = [connect(port), connect(port), connect(port)]
  await until(() => accepted.length === 3)
  const refused = connect(port)
  refused.write(get('/livez'))
  const answer = await answerOf(refused)
  expect(answer).toMatch(/^HTTP\/1\.1 503 /)
  expect(answer.toLowerCase()).toMatch(/\r\nretry-after: 1\r\n/)
  expect(answer.toLowerCase()).toMatch(/\r\nconnection: close\r\n/)
  expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))).issues[0].code).toBe('InternalServerError')
  first[1]?.write(get('/livez'))
  expect(await answerOf(first[1] as net.Socket)).toMatch(/^HTTP\/1\.1 200 /)

  first[0]?.destroy()
  await until(() => accepted[0]?.closed === true)
  const next = connect(port)
  next.write(get('/livez'))
  expect(await answerOf(next)).toMatch(/^HTTP\/1\.1 200 /)
})

test('connections beyond the limit of refused ones are closed immediately', async () => {
  const { port, accepted } = await listen()
  for (let count = 0; count < 5; count++) connect(port)
  await until(() => accepted.length === 5)
  const dropped = connect(port)
  await once(dropped, 'close')
  expect(accepted).toHaveLength(5)
})

test.each([
  ['a file', get('/file')],
  ['a response', get('/livez')],
  ['a refusal', get('/nothing')],
  ['a refusal of a malformed URL', get('/%zz')],
  ['a refusal of bytes that are not HTTP', 'nonsense\r\n\r\n'],
])('%s forbids sniffing its media type', async (_, text) => {
  const { port } = await listen()
  const socket = connect(port)
  socket.write(text)
  let answer = ''
  socket.setEncoding('latin1').on('data', chunk => {
    answer += chunk
  })
  await until(() => answer.includes('\r\n\r\n'))
  expect(answer.toLowerCase()).toContain('\r\nx-content-type-options: nosniff\r\n')
})

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await pause(5)
}
