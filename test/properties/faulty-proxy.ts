import { Agent, createServer, type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/**
 * The fate of a request. `drop`: the request does not arrive. `lose`: the response does not arrive. `cut`: half of the response
 * arrives. `delay`: the response arrives after the client has given up. `duplicate`: the request arrives twice.
 */
export type Fault = 'drop' | 'lose' | 'cut' | 'delay' | 'duplicate'

/** A request that arrived at the proxy. */
type Arrived = { method: string; url: string; headers: IncomingMessage['headers']; fault: Fault | undefined }

/** Starts a proxy in front of a service. `faultOf` decides for each request. */
export async function startFaultyProxy(target: string, faultOf: (request: IncomingMessage) => Fault | undefined) {
  const agent = new Agent({ keepAlive: true })
  const arrived: Arrived[] = []
  const server = createServer((request, response) => {
    void serve(request, response).catch(() => response.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/', headers } = request
    const fault = faultOf(request)
    arrived.push({ method, url, headers, fault })
    const body = await buffer(request)
    if (fault === 'drop') return void response.destroy()
    const forward = () => forwardTo(new URL(url, target), { method, headers, body })
    const [answer] = await Promise.all(fault === 'duplicate' ? [forward(), forward()] : [forward()])
    switch (fault) {
      case undefined:
      case 'duplicate':
        return void response.writeHead(answer.status, answer.headers).end(answer.body)
      case 'lose':
        return void response.destroy()
      case 'cut':
        response.writeHead(answer.status, answer.headers)
        return void response.write(answer.body.subarray(0, answer.body.length / 2), () => response.destroy())
      case 'delay':
        // The client closes the connection when it gives up.
        return
      default:
        return fault satisfies never
    }
  }

  async function forwardTo(
    url: URL,
    { method, headers, body }: { method: string; headers: IncomingMessage['headers']; body: Buffer },
  ): Promise<{ status: number; headers: IncomingMessage['headers']; body: Buffer }> {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      requestHttp(url, { method, headers, agent }, resolve).on('error', reject).end(body)
    })
    return { status: answer.statusCode ?? 0, headers: answer.headers, body: await buffer(answer) }
  }

  return {
    url: `http://127.0.0.1:${port}`,
    arrived,
    async stop() {
      agent.destroy()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
