import type { Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'

type Limits = {
  /** Connections that are served at the same time. */
  connectionsMax: number
  /** Connections beyond that, each of which gets one refusal. Further ones are closed at once. */
  refusedConnectionsMax: number
  /** Milliseconds that a client may leave an answer unread. */
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
 * Bounds the memory and sockets that all clients together can use. An answer stays in memory until its client has read it, and
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

  /** The response to the connection's latest request, while it is not fully written. Earlier ones are written before it. */
  unfinishedResponseOf(socket: Socket): ServerResponse | undefined {
    const response = this.#open.get(socket)?.response
    return response?.writableFinished ? undefined : response
  }

  /**
   * Closes the connections whose clients leave an answer unread.
   * @returns how many
   */
  sweep(): number {
    const nowMs = performance.now()
    let closed = 0
    for (const [socket, connection] of this.#open) {
      // An idle connection must not keep its last request and response in memory.
      if (connection.response?.writableFinished) connection.response = undefined
      const { bytesWritten } = socket
      // A streamed answer writes more whenever the client has read; a whole one has to be read within the limit.
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

/** Nothing crosses the connection while a long request is answered; without this it would be closed as idle. */
export function keepOpenFor({ raw: { socket } }: FastifyRequest, ms: number): void {
  // An injected request has another kind of socket.
  if (socket instanceof Socket) socket.setTimeout(ms)
}
