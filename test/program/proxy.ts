import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'

type Pass = (incoming: IncomingMessage, outgoing: ServerResponse, answer: IncomingMessage) => void

const servers = new Set<Server>()

/**
 * Starts a proxy in front of a service.
 * @param pass gets the service's response; the headers are already written
 * @param admits whether to forward a request to the service; other requests never get a response
 */
export async function startProxy(
  target: string,
  pass: Pass,
  { admits = () => true }: { admits?: (incoming: IncomingMessage) => boolean } = {},
): Promise<string> {
  return await serveHere((incoming, outgoing) => {
    if (!admits(incoming)) return
    const { method, url, headers } = incoming
    const onward = request(`${target}${url}`, { method, headers }, answer => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers)
      pass(incoming, outgoing, answer)
    })
    onward.on('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
}

/** @returns the address of a server on this machine */
export async function serveHere(
  handle: (incoming: IncomingMessage, outgoing: ServerResponse) => void,
  { onConnect }: { onConnect?: (incoming: IncomingMessage, socket: Duplex) => void } = {},
): Promise<string> {
  const server = createServer(handle).listen(0, '127.0.0.1')
  if (onConnect !== undefined) server.on('connect', onConnect)
  servers.add(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** An address at which no process listens. */
export async function closedAddress(): Promise<string> {
  const address = await serveHere(() => undefined)
  await closeServers()
  return address
}

/** Stops all started servers. */
export async function closeServers(): Promise<void> {
  for (const server of servers) {
    servers.delete(server)
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
}
