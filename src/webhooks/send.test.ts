import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { Fence } from './fence.ts'
import { Sender } from './send.ts'
import { keyOf } from './signing.ts'

const servers: Server[] = []
const sockets = new Set<Socket>()
afterEach(() => {
  for (const socket of sockets) socket.destroy()
  for (const server of servers.splice(0)) server.close()
})

/** Sends one request to a server that answers with these bytes, well-formed or not. */
async function send(
  answer: string | Buffer | ((socket: Socket) => unknown),
  { attemptMsMax }: { attemptMsMax?: number } = {},
) {
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined)
    socket.once('data', () => (typeof answer === 'function' ? answer(socket) : socket.end(answer)))
  })
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const fence = new Fence({ allowsHttp: true, allowsLoopback: true, refusedPorts: [] })
  const sender = new Sender(fence, { clockMs: Date.now, ...(attemptMsMax === undefined ? {} : { attemptMsMax }) })
  const outcome = await sender.send({ url, headers: {}, keys: [keyOf('whsec_AAAA')], id: 'evt_1', body: '{}' })
  await sender.close()
  return outcome
}

test.each([
  ['text', 'Hello, this is not HTTP.\r\n\r\n'],
  ['a page without a status line', '<html>ok</html>'],
  ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
  ['a TLS alert', Buffer.from([0x15, 3, 1, 0, 2, 2, 0x28])],
  ['HTTP/2', Buffer.from('000006040000000000000400100000', 'hex')],
  ['an impossible status', 'HTTP/1.1 99 Odd\r\ncontent-length: 0\r\n\r\n'],
  ['a length that is not a number', 'HTTP/1.1 200 OK\r\ncontent-length: abc\r\n\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab'],
  ['a header of 40 kB', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(40_000)}\r\n\r\n`],
  ['a switch to another protocol', 'HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhello'],
  ['an unrequested 100', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'],
])('a response that is not valid HTTP has the error class protocol: %s', async (_, answer) => {
  expect(await send(answer)).toMatchObject({ status: null, error: 'protocol', response: null })
})

test.each([
  ['before the response', (socket: Socket) => socket.end()],
  ['within its header', (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le')],
  ['by a reset', (socket: Socket) => socket.resetAndDestroy()],
])('a connection that breaks has the error class connection: %s', async (_, answer) => {
  expect(await send(answer)).toMatchObject({ status: null, error: 'connection', response: null })
})

test('an endless response is cut off after 16 KiB, and its connection is closed', async () => {
  let writtenBytes = 0
  const { promise: isClosed, resolve } = Promise.withResolvers<void>()
  const outcome = await send(socket => {
    socket.on('close', () => resolve())
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10737418240\r\n\r\n')
    const chunk = Buffer.alloc(65_536, 'a')
    const write = () => {
      while (!socket.destroyed) {
        writtenBytes += chunk.length
        if (!socket.write(chunk)) break
      }
    }
    socket.on('drain', write)
    write()
  })
  expect(outcome).toMatchObject({ status: 200, error: null, response: 'a'.repeat(16_384) })
  await isClosed
  // At most as much as fits into the buffers of both sockets.
  expect(writtenBytes).toBeLessThan(50_000_000)
})

test('a response whose body never ends counts by its status after the time-out', async () => {
  const attemptMsMax = 1_000
  const drip = (status: string) => (socket: Socket) => {
    socket.write(`HTTP/1.1 ${status}\r\ntransfer-encoding: chunked\r\n\r\n`)
    const timer = setInterval(() => socket.write('1\r\na\r\n'), 50)
    socket.on('close', () => clearInterval(timer))
  }
  const [good, bad] = await Promise.all([drip('200 OK'), drip('500 Odd')].map(each => send(each, { attemptMsMax })))
  expect([good?.error, bad?.error]).toEqual([null, 'status'])
  for (const outcome of [good, bad]) {
    expect(outcome?.response).toMatch(/^a{1,21}$/)
    expect(outcome?.durationMs).toBeGreaterThanOrEqual(attemptMsMax - 10)
  }
})
