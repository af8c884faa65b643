import type { KeyObject } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Agent, buildConnector, Dispatcher } from 'undici'
import type { Tracing } from '../tracing/tracing.ts'
import { type Fence, TargetRefused } from './fence.ts'
import { parseRetryAfter } from './rules.ts'
import { sign } from './signing.ts'

const limits = {
  // The contract: from the start of the attempt to the end of the response.
  attemptMsMax: 15_000,
  // The part of each response that is kept.
  responseBytesMax: 16 * 1024,
  // More than a server sends by accident. A larger header is an error.
  headerBytesMax: 16 * 1024,
  // As many as an endpoint may have in flight, times the endpoints that share a host name.
  connectionsPerHostMax: 64,
  // Longer than the pause between two deliveries of a busy endpoint, shorter than the idle timeout of common servers.
  idleConnectionMsMax: 4_000,
}

/** A signed request to an endpoint. */
export type Outgoing = { url: string; headers: Record<string, string>; keys: KeyObject[]; id: string; body: string }

/** How an attempt failed. The order is that of docs/reference/webhooks.md. */
export const attemptErrors = [
  'status',
  'redirect',
  'gone',
  'timeout',
  'dns',
  'connection',
  'tls',
  'address',
  'protocol',
] as const
type AttemptError = (typeof attemptErrors)[number]

/** The outcome of an attempt. `error` is null for a success, `status` and `response` are null if no response came. */
export type AttemptOutcome = {
  status: number | null
  error: AttemptError | null
  response: string | null
  durationMs: number
  /** Seconds that the endpoint asked us to wait; null if it did not. */
  retryAfterSeconds: number | null
}

/** Sends signed requests, each once, through the fence, over separate connections, never the global ones. */
export class Sender {
  /** Opened with the first delivery. */
  private agent: Promise<Agent> | undefined
  private readonly fence: Fence
  private readonly clockMs: () => number
  private readonly attemptMsMax: number
  private readonly tracing: Tracing | undefined

  /** @param clockMs the real time, in milliseconds since 1970: receivers compare the signed timestamp with their clocks */
  constructor(
    fence: Fence,
    {
      clockMs,
      attemptMsMax = limits.attemptMsMax,
      tracing,
    }: { clockMs: () => number; attemptMsMax?: number; tracing?: Tracing | undefined },
  ) {
    this.fence = fence
    this.clockMs = clockMs
    this.attemptMsMax = attemptMsMax
    this.tracing = tracing
  }

  /** Never throws: a failed request is an outcome. Redirects are not followed. */
  async send(outgoing: Outgoing): Promise<AttemptOutcome> {
    const startedMs = performance.now()
    const exchange = () => this.exchange(outgoing)
    const attributes = { 'midmonth.webhook_id': outgoing.id }
    const traced = this.tracing?.inSpan('webhook attempt', { kind: 'CLIENT', attributes }, exchange)
    const { status, retryAfter, response, thrown } = await (traced ?? exchange())
    return {
      status,
      response,
      // A body that breaks off changes nothing, because the status is already known.
      error: status === null ? errorOf(thrown) : errorOfStatus(status),
      retryAfterSeconds: parseRetryAfter(retryAfter, this.clockMs()),
      durationMs: Math.round(performance.now() - startedMs),
    }
  }

  private async exchange(outgoing: Outgoing): Promise<EndpointResponse> {
    const exchange = new Exchange(this.attemptMsMax)
    try {
      const { origin, pathname, search } = this.fence.judgeUrl(outgoing.url)
      const headers = this.headersOf(outgoing)
      this.agent ??= openAgent(this.fence)
      const agent = await this.agent
      agent.dispatch({ origin, path: pathname + search, method: 'POST', headers, body: outgoing.body }, exchange)
    } catch (error) {
      exchange.end(error)
    }
    return await exchange.response
  }

  async close(): Promise<void> {
    await (await this.agent)?.destroy()
  }

  private headersOf({ id, body, headers, keys }: Outgoing): Record<string, string> {
    const sentAt = Math.floor(this.clockMs() / 1_000)
    return {
      ...headers,
      'content-type': 'application/json',
      'user-agent': 'midmonth',
      'webhook-id': id,
      'webhook-timestamp': String(sentAt),
      'webhook-signature': sign(keys, { id, sentAt, body }),
    }
  }
}

async function openAgent(fence: Fence): Promise<Agent> {
  // Imported late: undici is a tenth of what a start loads, and many processes never deliver.
  const undici = await import('undici')
  return new undici.Agent({
    connect: connectorOf(fence, undici.buildConnector),
    connections: limits.connectionsPerHostMax,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: limits.idleConnectionMsMax,
    keepAliveMaxTimeout: limits.idleConnectionMsMax,
    // `Exchange` has one timer for the whole attempt.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxHeaderSize: limits.headerBytesMax,
  })
}

function connectorOf(fence: Fence, build: typeof buildConnector): buildConnector.connector {
  return (options, callback) => {
    const port = Number(options.port) || (options.protocol === 'https:' ? 443 : 80)
    const connect = build({ timeout: limits.attemptMsMax, allowH2: false, lookup: fence.lookupFor(port) })
    const judged: buildConnector.Callback = (...[error, socket]) => {
      if (error !== null) return callback(error, null)
      try {
        fence.judgeAddress((socket as Socket).remoteAddress ?? '', port)
      } catch (refusal) {
        socket.destroy()
        return callback(refusal as TargetRefused, null)
      }
      callback(null, socket)
    }
    connect(options, judged)
  }
}

/** The beginning of a response, as text that PostgreSQL can store. Without a status, `thrown` says why. */
type EndpointResponse = {
  status: number | null
  retryAfter: string | string[] | undefined
  response: string | null
  thrown: unknown
}

/**
 * Receives the response to one request, and reads only its beginning. undici's `request` would create a stream for each response,
 * which costs as much as the rest of the request.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly response: Promise<EndpointResponse>
  private readonly resolve: (response: EndpointResponse) => void
  private readonly timer: NodeJS.Timeout
  private readonly chunks: Buffer[] = []
  private controller: Dispatcher.DispatchController | undefined
  private bytes = 0
  private status: number | null = null
  private retryAfter: string | string[] | undefined
  private hasEnded = false

  constructor(msMax: number) {
    const { promise, resolve } = Promise.withResolvers<EndpointResponse>()
    this.response = promise
    this.resolve = resolve
    this.timer = setTimeout(() => this.cutOff(new DOMException('too slow', 'TimeoutError')), msMax)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    // It timed out while it waited for a connection.
    if (this.hasEnded) controller.abort(new Error('the attempt is over'))
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // 1XX announces that the response will follow.
    if (status < 200) return
    this.status = status
    this.retryAfter = headers['retry-after']
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.chunks.push(chunk)
    this.bytes += chunk.length
    if (this.bytes >= limits.responseBytesMax) this.cutOff(null)
  }

  onResponseEnd(): void {
    this.end(null)
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.end(error)
  }

  end(thrown: unknown): void {
    if (this.hasEnded) return
    this.hasEnded = true
    clearTimeout(this.timer)
    const { status, retryAfter } = this
    const start = Buffer.concat(this.chunks).subarray(0, limits.responseBytesMax).toString('utf8')
    const response = status === null ? null : start.replaceAll('\0', '\ufffd')
    this.resolve({ status, retryAfter, response, thrown })
  }

  private cutOff(thrown: unknown): void {
    this.end(thrown)
    this.controller?.abort(new Error('the attempt is over'))
  }
}

function errorOfStatus(status: number): AttemptError | null {
  if (status >= 200 && status < 300) return null
  if (status === 410) return 'gone'
  return status >= 300 && status < 400 ? 'redirect' : 'status'
}

function errorOf(thrown: unknown): AttemptError {
  const error = thrown instanceof AggregateError ? thrown.errors[0] : thrown
  if (error instanceof TargetRefused || (error as Error).cause instanceof TargetRefused) return 'address'
  const { code = '', name = '', syscall = '', message } = error as NodeJS.ErrnoException
  // Before timeouts: a name server that does not answer is `dns`.
  if (/^(getaddrinfo|query)/.test(syscall)) return 'dns'
  if (/^(TimeoutError|AbortError)$/.test(name) || /TIMEOUT|ETIMEDOUT/.test(code)) return 'timeout'
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|UNABLE_|SELF_SIGNED|EPROTO|ERR_OSSL)/.test(code)) return 'tls'
  // Most errors of undici's parser have no code, and an unrequested 100 or 101 has that of a lost socket.
  if (name === 'HTTPParserError' || /^bad (response|upgrade)$/.test(message)) return 'protocol'
  return /^UND_ERR_(HEADERS_OVERFLOW|INVALID|RES_|NOT_SUPPORTED)/.test(code) ? 'protocol' : 'connection'
}
