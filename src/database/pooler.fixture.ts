import { once } from 'node:events'
import net from 'node:net'

type Session = { server: net.Socket; client: net.Socket | undefined }

const readyForQuery = 'Z'.charCodeAt(0)
const isIdle = 'I'.charCodeAt(0)
const authenticated = Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I', 'latin1')

/**
 * Starts a pooler in transaction mode, as small as possible: a connection has one of two sessions until its transaction has ended, and
 * the session that was given back last is the next to be given out.
 * @param socket the socket of the server
 */
export async function startPooler(socket: string, role: { user: string; database: string }) {
  const idle: Session[] = []
  const all = await Promise.all([1, 2].map(() => openSession(socket, role, session => idle.push(session))))
  const clients = new Set<net.Socket>()
  const listener = net.createServer(client => {
    clients.add(client)
    client.on('error', () => undefined)
    client.once('data', () => {
      client.write(authenticated)
      client.on('data', request => {
        const session = all.find(each => each.client === client) ?? idle.pop()
        if (session === undefined || request[0] === 'X'.charCodeAt(0)) return client.end()
        session.client = client
        return session.server.write(request)
      })
    })
  })
  await once(listener.listen(0, '127.0.0.1'), 'listening')
  return {
    port: (listener.address() as net.AddressInfo).port,
    stop() {
      listener.close()
      for (const each of [...clients, ...all.map(({ server }) => server)]) each.destroy()
    },
  }
}

/** @param onIdle called whenever the session is in no transaction */
async function openSession(
  socket: string,
  { user, database }: { user: string; database: string },
  onIdle: (session: Session) => void,
): Promise<Session> {
  const session: Session = { server: net.connect(socket), client: undefined }
  const options = Buffer.from(`\0\0\0\0\0\x03\0\0user\0${user}\0database\0${database}\0\0`, 'latin1')
  options.writeInt32BE(options.length)
  session.server.write(options)
  let received = Buffer.of()
  await new Promise<void>(resolve => {
    session.server.on('data', chunk => {
      session.client?.write(chunk)
      received = Buffer.concat([received, chunk])
      while (received.length >= 5 && received.length > received.readInt32BE(1)) {
        const end = 1 + received.readInt32BE(1)
        if (received[0] === readyForQuery && received[5] === isIdle) {
          session.client = undefined
          onIdle(session)
          resolve()
        }
        received = received.subarray(end)
      }
    })
  })
  return session
}
