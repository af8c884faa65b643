import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export type KeyRequest = { method: string; path: string; headers: IncomingHttpHeaders; body: string }
/** A response with JSON, or with any text. */
export type KeyResponse = { status: number; body: object | string; headers?: Record<string, string> }

export type KeyService = {
  address: string
  requests: KeyRequest[]
  /** What the next requests get instead, in this order. `hang`: nothing; `reset`: the connection is closed. */
  next: (KeyResponse | 'hang' | 'reset')[]
  stop(): Promise<void>
}

/** Serves a key provider's protocol over HTTP, with faults on demand. */
export async function startKeyService(answer: (request: KeyRequest) => KeyResponse): Promise<KeyService> {
  const [requests, next]: [KeyRequest[], KeyService['next']] = [[], []]
  const server = createServer(async (incoming, response) => {
    const { method = '', url: path = '', headers } = incoming
    const request = { method, path, headers, body: await text(incoming) }
    requests.push(request)
    const given = next.shift() ?? answer(request)
    if (given === 'hang') return
    if (given === 'reset') {
      incoming.socket.destroy()
      return
    }
    const { status, body } = given
    response.writeHead(status, { 'content-type': 'application/json', ...given.headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    next,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Decodes as strictly as these services: Node’s decoder accepts other alphabets and ignores faults. */
export function fromBase64(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64') !== text) throw new Error(`${text} is not base64`)
  return bytes
}
