import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import pino, { type Logger } from 'pino'
import { Webhook } from 'standardwebhooks'
import { Delivery } from '../../src/webhooks/delivery.ts'
import { Sender } from '../../src/webhooks/send.ts'
import type { Harness } from '../harness/harness.ts'

export type Received = { headers: IncomingHttpHeaders; body: string; path: string }
// biome-ignore lint/suspicious/noExplicitAny: a test that reads a wrong field fails anyway.
type EventBody = any

/** Starts a partner's server, which records requests and responds as the test decides. */
export async function startReceiver() {
  const received: Received[] = []
  const open = { now: 0, most: 0 }
  let answer: (response: ServerResponse, request: Received) => unknown = response => response.end('thanks')
  const server = createServer(async (request, response) => {
    open.now += 1
    open.most = Math.max(open.most, open.now)
    response.on('close', () => {
      open.now -= 1
    })
    const one = { headers: request.headers, body: await text(request), path: request.url ?? '' }
    received.push(one)
    await answer(response, one)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    received,
    /** The number of open requests, now and at its peak. */
    open,
    bodies: (): EventBody[] => received.map(({ body }) => JSON.parse(body)),
    /** Responds with this status from now on. */
    answerWith(status: number, headers: Record<string, string> = {}, body = '') {
      answer = response => response.writeHead(status, headers).end(body)
    },
    /** Lets this function respond to each request from now on. */
    answerBy(by: typeof answer) {
      answer = by
    },
    async stop() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
export type Receiver = Awaited<ReturnType<typeof startReceiver>>

/**
 * Verifies a request as a partner would, with the reference implementation, which checks the timestamp against real time.
 * @throws if the signature does not match
 */
export function verify(secret: string, { headers, body }: Received): EventBody {
  return new Webhook(secret).verify(body, headers as Record<string, string>)
}

/** Creates a worker's webhook delivery; a test runs its rounds with `deliverDue`. */
export function deliveryOf(
  { db, clock, fence, mode }: Pick<Harness, 'db' | 'clock' | 'fence' | 'mode'>,
  { log = pino({ level: 'silent' }) as Logger, realNow = () => new Date() } = {},
): Delivery {
  const hasClocks = mode === 'sandbox'
  return new Delivery({
    db,
    log,
    now: clock.now,
    realNow,
    hasClocks,
    sender: new Sender(fence, { clockMs: Date.now }),
  })
}
