import type { Server } from 'node:http'
import type { Socket } from 'node:net'

type Limits = {
  /** Connections that are served at the same time. */
  connectionsMax: number
  /** Connections beyond that, each of which gets one refusal; what comes after them is closed at once. */
  refusedConnectionsMax: number
  /** Milliseconds that a client may leave an answer unread. */
  unsentMsMax: number
}

type Connection = { isRefused: boolean; bytesWritten: number; stalledSinceMs: number | undefined }

/**
 * Bounds what all clients together can make the process hold. An answer stays in memory until its client has read it, and
 * Node waits for that as long as the client takes a byte now and then.
 */
export class Connections {
  readonly #open = new Map<Socket, Connection>()
  readonly #limits: Limits
  #served = 0

  constructor(server: Server, limits: Limits) {
    this.#limits = limits
    server.maxConnections = this.#openMax
    server.on('connection', socket => this.#accept(socket))
  }

  get #openMax(): number {
    return this.#limits.connectionsMax + this.#limits.refusedConnectionsMax
  }

  /** Whether requests of this connection are refused, because there are too many others. */
  isRefused(socket: Socket): boolean {
    return this.#open.get(socket)?.isRefused ?? false
  }

  /**
   * Closes the connections whose client leaves an answer unread.
   * @returns how many
   */
  sweep(): number {
    const nowMs = performance.now()
    let closed = 0
    for (const [socket, connection] of this.#open) {
      const { bytesWritten } = socket
      // A streamed answer writes on whenever the client has read; a whole one has to be read within the time.
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
    // Node's `maxConnections` does not count the connections that another listener has passed on.
    if (this.#open.size >= this.#openMax) {
      socket.destroy()
      return
    }
    const isRefused = this.#served >= this.#limits.connectionsMax
    if (!isRefused) this.#served++
    this.#open.set(socket, { isRefused, bytesWritten: 0, stalledSinceMs: undefined })
    socket.once('close', () => {
      this.#open.delete(socket)
      if (!isRefused) this.#served--
    })
  }
}
