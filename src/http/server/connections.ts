import type { Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'

type Limits = {
  /** Connections that are served concurrently. */
  connectionsMax: number
  /** Connections beyond the limit, each of which gets one refusal. Further connections are closed immediately. */
  refusedConnectionsMax: number
  /** Milliseconds that a client may leave a response unread. */
  unsentMsMax: number
}

type Connection = {
  isRefused: boolean
  bytesWritten: number
  stalledSinceMs: number | undefined
  /** The response to the latest request. */
  response: ServerResponse | undefined
}

/**
 * Bounds the memory and sockets that all clients together can use. A response stays in memory until its client has read it, and
 * Node waits for a client that reads a byte now and then.
 */
export class Connections {
  readonly #open = new Map<Socket, Connection>()
  readonly #limits: Limits
  #served = 0

  constructor(server: Server, limits: Limits) {
    this.#limits = limits
    server.maxConnections = this.#openMax
    server.on('connection', socket => this.#accept(socket))
    server.on('request', (request, response) => {
      const connection = this.#open.get(request.socket)
      if (connection !== undefined) connection.response = response
    })
  }

  get #openMax(): number {
    return this.#limits.connectionsMax + this.#limits.refusedConnectionsMax
  }

  /** Whether this connection exceeds the limit, so that its requests are refused. */
  isRefused(socket: Socket): boolean {
    return this.#open.get(socket)?.isRefused ?? false
  }

  /** The response to the connection's latest request, until it is fully written. Earlier responses are written first. */
  unfinishedResponseOf(socket: Socket): ServerResponse | undefined {
    const response = this.#open.get(socket)?.response
    return response?.writableFinished ? undefined : response
  }

  /**
   * Closes the connections whose clients leave a response unread.
   * @returns how many connections were closed
   */
  sweep(): number {
    const nowMs = performance.now()
    let closed = 0
    for (const [socket, connection] of this.#open) {
      // An idle connection must not keep its last request and response in memory.
      if (connection.response?.writableFinished) connection.response = undefined
      const { bytesWritten } = socket
      // A streamed response writes more whenever the client has read; a whole response must be read within the limit.
      if (socket.writableLength === 0 || bytesWritten !== connection.bytesWritten) {
        connection.bytesWritten = bytesWritten
        connection.stalledSinceMs = undefined
        continue
      }
      connection.stalledSinceMs ??= nowMs
      if (nowMs - connection.stalledSinceMs < this.#limits.unsentMsMax) continue
      socket.destroy()
      closed++
    }
    return closed
  }

  #accept(socket: Socket): void {
    // Node's `maxConnections` does not count connections that were handed over by another listener.
    if (this.#open.size >= this.#openMax) {
      socket.destroy()
      return
    }
    const isRefused = this.#served >= this.#limits.connectionsMax
    if (!isRefused) this.#served++
    this.#open.set(socket, { isRefused, bytesWritten: 0, stalledSinceMs: undefined, response: undefined })
    socket.once('close', () => {
      this.#open.delete(socket)
      if (!isRefused) this.#served--
    })
  }
}

/** How long no byte may cross a connection before it is closed. */
export const idleConnectionMsMax = 60_000

/** Keeps a connection open during a long request: no bytes cross it, so it would be closed as idle. */
export function keepOpenFor({ raw: { socket } }: FastifyRequest, ms: number): void {
  // An injected request has another kind of socket.
  if (socket instanceof Socket) socket.setTimeout(ms)
}
