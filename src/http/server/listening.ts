import assert from 'node:assert/strict'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { App } from './server.ts'

/** An app that accepts connections. */
export type Listening = {
  /** `http://127.0.0.1:8080` */
  address: string
  /**
   * Shuts down gracefully: fails /readyz, then stops accepting connections and waits for running requests.
   * @param drainMs how long to keep serving while /readyz fails
   */
  close(options: { drainMs: number }): Promise<void>
}

/** The message names the wrong setting, and a value that would work. */
export class ListenProblem extends Error {
  readonly code: string

  constructor(message: string, { code, cause }: { code: string; cause: unknown }) {
    super(message, { cause })
    this.code = code
  }
}

// The kernel's queue of connections that are not accepted yet. When it is full, the kernel drops packets, and a client waits
// seconds for a refusal that could be immediate. With Node's 511, a thousand clients that reconnect together fill the queue.
const backlogMax = 4_096

/**
 * Listens on an address, or on every address of `localhost`.
 * @param setting the name of the setting for the port
 * @throws ListenProblem, with a sentence for the operator
 */
export async function listen(
  app: App,
  { host, port, setting }: { host: string; port: number; setting: 'PORT' | 'MIDMONTH_HEALTH_PORT' },
): Promise<Listening> {
  try {
    return await listenOn(app, { addresses: await addressesOf(host), port })
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    const reasons: Record<string, string> = {
      EADDRINUSE: `The port ${port} of ${host} is in use: set ${setting} to another port, or to 0 for any free port`,
      EACCES: `This user may not listen on the port ${port}: set ${setting} to a port above 1023`,
      EADDRNOTAVAIL: `${host} is not an address of this machine: set HOST to one of its addresses, or to 0.0.0.0 for all`,
      ENOTFOUND: `There is no address for ${host}: set HOST to an address of this machine, or to 0.0.0.0 for all`,
    }
    const message = reasons[code]
    throw message === undefined ? error : new ListenProblem(message, { code, cause: error })
  }
}

// A client resolves localhost to 127.0.0.1 or to ::1, and may try only one of them.
async function addressesOf(host: string): Promise<string[]> {
  if (host !== 'localhost') return [host]
  const found = await lookup(host, { all: true })
  return [...new Set(found.map(({ address }) => address))]
}

/**
 * Listens on several addresses with one HTTP server. For the second address of localhost, Fastify would open a second server
 * without the limits and handlers of the first.
 */
export async function listenOn(
  app: App,
  { addresses: [first, ...others], port }: { addresses: string[]; port: number },
): Promise<Listening> {
  assert(first !== undefined)
  const address = await app.listen({ host: first, port, backlog: backlogMax })
  const listeners: net.Server[] = []
  const close = async ({ drainMs }: { drainMs: number }) => {
    await closeInOrder(app, listeners, { drainMs })
  }
  try {
    for (const host of others) {
      const listener = await passConnections(app, { host, port: Number(new URL(address).port) })
      if (listener !== undefined) listeners.push(listener)
    }
  } catch (error) {
    await close({ drainMs: 0 })
    throw error
  }
  return { address, close }
}

/** @returns undefined if the machine lacks the address: a container without IPv6 still has ::1 in its hosts file */
async function passConnections(app: App, { host, port }: { host: string; port: number }) {
  // The options that Node's HTTP server sets on its own listener.
  const listener = net.createServer({ allowHalfOpen: true, noDelay: true })
  listener.on('connection', socket => app.server.emit('connection', socket))
  listener.listen({ host, port, backlog: backlogMax })
  try {
    await once(listener, 'listening')
  } catch (error) {
    const isMissing = ['EADDRNOTAVAIL', 'EAFNOSUPPORT'].includes((error as NodeJS.ErrnoException).code ?? '')
    if (isMissing) return undefined
    throw error
  }
  app.log.info(`Server listening at http://${net.isIPv6(host) ? `[${host}]` : host}:${port}`)
  return listener
}

async function closeInOrder(app: App, listeners: net.Server[], { drainMs }: { drainMs: number }): Promise<void> {
  app.isDraining = true
  if (drainMs > 0) await pause(drainMs)
  // Fastify closes only the connections that are idle when closing starts. A connection that its client keeps open after the
  // last response would delay the end for more than a minute.
  const sweep = setInterval(() => app.server.closeIdleConnections(), 50)
  try {
    await Promise.all([app.close(), ...listeners.map(closeListener)])
  } finally {
    clearInterval(sweep)
  }
}

/** Resolves when the last connection has ended; immediately if the listener is already closed. */
async function closeListener(listener: net.Server): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  listener.close(() => resolve())
  await promise
}
