import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Partner } from './clients.ts'
import type { Random } from './random.ts'

/** The record of the partners' webhook endpoint. */
export type Receiver = {
  url: string
  /** The ids of the events accepted with 200. */
  accepted: ReadonlySet<string>
  requests(): number
  stop(): Promise<void>
}

/** Starts the webhook endpoint of all partners, which now and then refuses a delivery or breaks the connection. */
export async function startReceiver(random: Random): Promise<Receiver> {
  const accepted = new Set<string>()
  let requests = 0
  const server = createServer((request, response) => {
    requests++
    request.resume().on('end', () => {
      const [isBroken, isRefused] = [random.chance(1 / 50), random.chance(1 / 50)]
      if (isBroken) request.socket.destroy()
      else if (isRefused) response.writeHead(500).end()
      else {
        accepted.add(String(request.headers['webhook-id']))
        response.end()
      }
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    accepted,
    requests: () => requests,
    async stop() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** Creates an endpoint for all events of a partner. */
export async function subscribe(address: string, { apiKey }: Partner, url: string): Promise<void> {
  const response = await fetch(`${address}/v1/webhooks`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
    body: JSON.stringify({ url }),
  })
  if (response.status !== 201) throw new Error(`Creating a webhook endpoint failed: ${await response.text()}`)
}
