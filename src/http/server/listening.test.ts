import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import pino from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { createServer } from './create-server.ts'
import { listenOn } from './listening.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

// On most machines localhost is 127.0.0.1 and ::1. Linux has all of 127.0.0.0/8, so the tests use two of those.
const [first, second] = ['127.0.0.1', '127.0.0.2']

async function listen(limits: { connectionsMax?: number; refusedConnectionsMax?: number } = {}) {
  const app = createServer(
    {
      db: harness.db,
      log: pino({ level: 'silent' }),
      now: harness.clock.now,
      mode: harness.mode,
      sealer: harness.sealer,
    },
    limits,
  )
  app.get('/livez', async () => ({ status: 'ok' }))
  const released = Promise.withResolvers<void>()
  app.get('/slow', async () => {
    await released.promise
    return { status: 'ok' }
  })
  const listening = await listenOn(app, { addresses: [first, second], port: 0 })
  const close = async () => await listening.close({ drainMs: 0 })
  onTestFinished(async () => {
    released.resolve()
    await close()
  })
  return { app, port: Number(new URL(listening.address).port), release: () => released.resolve(), close }
}

function connect(host: string, port: number): net.Socket {
  const socket = net.connect({ host, port })
  socket.on('error', () => {})
  onTestFinished(() => void socket.destroy())
  return socket
}

/** Sends one raw request. @returns the response, once the server has closed the connection */
async function send(socket: net.Socket, text: string): Promise<string> {
  let answer = ''
  socket.setEncoding('latin1').on('data', chunk => {
    answer += chunk
  })
  socket.write(text)
  await once(socket, 'close')
  return answer
}

test.each([first, second])('an unknown expectation is ignored on %s', async host => {
  const { port } = await listen()
  const request = 'GET /livez HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\nConnection: close\r\n\r\n'
  expect(await send(connect(host, port), request)).toMatch(/^HTTP\/1\.1 200 /)
})

test.each([first, second])('CONNECT and non-HTTP bytes are refused in the contract’s shape on %s', async host => {
  const { port } = await listen()
  for (const [text, status] of [
    ['CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', 405],
    ['nonsense\r\n\r\n', 400],
  ] as const) {
    const answer = await send(connect(host, port), text)
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))).issues).toHaveLength(1)
  }
})

test('all addresses share one limit of connections', async () => {
  const { app, port } = await listen({ connectionsMax: 2, refusedConnectionsMax: 1 })
  let accepted = 0
  app.server.on('connection', () => accepted++)
  connect(first, port)
  connect(second, port)
  await until(() => accepted === 2)
  const request = 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n'
  const refused = connect(second, port)
  const dropped = once(refused, 'connect').then(() => once(connect(second, port), 'close'))
  await dropped
  expect(await send(refused, request)).toMatch(/^HTTP\/1\.1 503 /)
})

test('a stop lets running requests on every address finish, and accepts no new connections', async () => {
  const { app, port, release, close } = await listen()
  let requests = 0
  app.server.on('request', () => requests++)
  const agent = new http.Agent({ keepAlive: true })
  onTestFinished(() => agent.destroy())
  const running = http.get({ host: second, port, path: '/slow', agent })
  const response = once(running, 'response')
  await until(() => requests === 1)
  const closed = close()
  await until(async () => await isRefused(second, port))
  release()
  const [answer] = (await response) as [http.IncomingMessage]
  expect(answer.statusCode).toBe(200)
  answer.resume()
  await closed
})

test('a port that is in use on one of the addresses is an error, and the other addresses are released', async () => {
  const taken = net.createServer().listen({ host: second, port: 0 })
  await once(taken, 'listening')
  onTestFinished(() => void taken.close())
  const { port } = taken.address() as net.AddressInfo
  const app = createServer({
    db: harness.db,
    sealer: harness.sealer,
    log: pino({ level: 'silent' }),
    now: harness.clock.now,
    mode: harness.mode,
  })
  await expect(listenOn(app, { addresses: [first, second], port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  expect(await isRefused(first, port)).toBe(true)
})

async function isRefused(host: string, port: number): Promise<boolean> {
  const socket = connect(host, port)
  return await once(socket, 'connect').then(
    () => false,
    () => true,
  )
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(5)
}
