import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { Problem, problem, shouldRetry } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import type { Clock } from '../../kernel/time.ts'
import { refuseBody } from '../bodies/body-timeouts.ts'
import type { Connections } from './connections.ts'
import { commonHeaders } from './request-headers.ts'

/**
 * Responds to bytes that never become a request for Fastify: no valid HTTP, headers that are too large, CONNECT. The response is
 * written to the socket directly, in the shape of every other refusal.
 */
export class RawReplies {
  readonly #connections: Connections
  readonly #headerBytesMax: number
  readonly #now: Clock
  // Requests whose body turned out to be unreadable before it had a reader.
  readonly #unreadableBodies = new WeakMap<IncomingMessage, Problem>()

  constructor(connections: Connections, { headerBytesMax, now }: { headerBytesMax: number; now: Clock }) {
    this.#connections = connections
    this.#headerBytesMax = headerBytesMax
    this.#now = now
  }

  /** The refusal that the reader of this body must respond with instead of reading. */
  bodyRefusalOf(request: IncomingMessage): Problem | undefined {
    return this.#unreadableBodies.get(request)
  }

  refuseConnect(socket: Socket): void {
    const allow = 'DELETE, GET, PATCH, POST, PUT'
    this.refuse(socket, problem('MethodNotAllowed', 'CONNECT is not supported; this is not a proxy', {}, { allow }))
  }

  /** Refuses bytes that Node could not read, and closes the connection. */
  refuse(socket: Socket, error: NodeJS.ErrnoException): void {
    if (error.code === 'ECONNRESET' || !socket.writable) {
      socket.destroy()
      return
    }
    const refusal = error instanceof Problem ? error : this.#refusalOf(error.code)
    const response = this.#connections.unfinishedResponseOf(socket)
    if (response === undefined) {
      this.#write(socket, refusal)
      return
    }
    // The requests before the unreadable bytes get their responses first; the connection ends with the last response.
    if (!response.headersSent) response.setHeader('connection', 'close')
    response.once('finish', () => socket.destroySoon())
    const { req: request } = response
    // If the bytes belong to the body of that request, the body's reader gets the refusal: now, or as soon as there is a reader.
    if (!request.complete && !refuseBody(request, refusal)) this.#unreadableBodies.set(request, refusal)
  }

  #refusalOf(code: string | undefined): Problem {
    if (code === 'HPE_HEADER_OVERFLOW')
      return problem('HeadersTooLarge', `The headers must not exceed ${this.#headerBytesMax} bytes`)
    if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return problem('RequestTimeout', 'The request took too long to arrive')
    if (code === 'HPE_INVALID_EOF_STATE') return problem('BadRequest', 'The body ended early')
    return problem('BadRequest', 'The request is not well-formed HTTP/1.1')
  }

  #write(socket: Socket, refusal: Problem): void {
    const { status, issues, headers } = refusal
    const body = JSON.stringify({ issues })
    const lines = Object.entries({
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(Buffer.byteLength(body)),
      ...commonHeaders(newId('request', this.#now())),
      'x-should-retry': String(shouldRetry(refusal, { isRepeatable: false })),
      ...headers,
      connection: 'close',
    }).map(([name, value]) => `${name}: ${value}`)
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
  }
}
