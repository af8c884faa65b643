import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { outageOutcome, Unavailable } from './errors.ts'

const limits = {
  // A host that does not say within this time whether it accepts writes counts as down. A search takes as long.
  answerMsMax: 1_000,
  // A frozen host, or one that is cut off, keeps its connections open: after this time they are looked at.
  checkMs: 2_000,
  // How often a search asks each host.
  searchMs: 250,
}

/**
 * No host of DATABASE_URL accepts writes at the moment.
 * @property refusal the error of a host that is up and refuses us, for example because of a wrong password: waiting does not help
 */
export class NoPrimary extends Unavailable {
  readonly refusal: Error | undefined

  constructor(refusal?: Error) {
    const reason = refusal === undefined ? '' : `: ${refusal.message}`
    super(`no host of the database accepts writes${reason}`, 'nothing-done')
    this.refusal = refusal
  }
}

/**
 * Splits an address with several hosts, `postgres://user@db-1,db-2:5433/midmonth?target_session_attrs=read-write`, into one address
 * per host, as libpq reads it. The driver knows addresses of one host only.
 * @throws Error with a sentence for the operator
 */
export function addressesOf(url: string): string[] {
  const [, start = '', hosts = '', end = ''] = /^([^/]*:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(url) ?? []
  if (/[?&](host|port)=[^&#]*(,|%2c)/i.test(end))
    throw new Error(
      'Write several hosts before the name of the database, like postgres://user@db-1:5432,db-2:5432/midmonth',
    )
  if (!hosts.includes(',')) return [url]
  const attributes = /[?&]target_session_attrs=([^&#]*)/.exec(end)?.[1] ?? 'read-write'
  if (attributes !== 'read-write' && attributes !== 'primary')
    throw new Error(
      `An address with several hosts leads to the one that accepts writes, not to target_session_attrs=${attributes}`,
    )
  const list = hosts.split(',')
  // The driver would take an empty name for localhost, which may be another server.
  if (list.some(host => /^(:|$)|\s|%20/.test(host)))
    // Without the address, which contains a password.
    throw new Error('Separate several hosts by commas only: a host of the database is empty or has a blank')
  return list.map(host => `${start}${host}${end}`)
}

/**
 * Makes the class of clients that connect to the host that accepts writes, and lose their connection when another host takes over.
 * Without the latter, a connection to a host that hangs would stay open, and its query would wait for hours.
 */
export function clientOf(addresses: readonly string[]): typeof pg.Client {
  const primary = new Primary(addresses)
  return class extends pg.Client {
    override connect(): Promise<pg.Client>
    override connect(callback: (error: Error | null, client?: pg.Client) => void): undefined
    override connect(callback?: (error: Error | null, client?: pg.Client) => void): Promise<pg.Client> | undefined {
      const connecting = primary.connect(this, () => super.connect())
      if (callback === undefined) return connecting
      connecting.then(
        client => callback(null, client),
        error => callback(error),
      )
      return undefined
    }
  }
}

type Host = { host: string; port: number; address: string }

/** The host that accepts writes, and the connections to it. */
class Primary {
  readonly #hosts: readonly Host[]
  readonly #clients = new Map<pg.Client, Host>()
  #known: Host | undefined
  #search: Promise<Host> | undefined
  #lost: NoPrimary | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(addresses: readonly string[]) {
    this.#hosts = addresses.map(address => {
      const { host, port } = new pg.Client(address)
      return { host, port, address }
    })
  }

  async connect(client: pg.Client, connect: () => Promise<pg.Client>): Promise<pg.Client> {
    const host = this.#known ?? (await this.#find())
    this.#clients.set(client, host)
    client.once('end', () => this.#clients.delete(client))
    client.on('error', () => this.#doubt(host))
    this.#schedule()
    Object.assign(client, { host: host.host, port: host.port })
    try {
      await connect()
      if (await acceptsWrites(client)) return client
      client.end().catch(() => undefined)
      throw new NoPrimary()
    } catch (error) {
      this.#clients.delete(client)
      this.#doubt(host)
      throw error
    }
  }

  #doubt(host: Host): void {
    if (this.#known === host) this.#known = undefined
  }

  /** @throws NoPrimary, at once during an outage: callers that wait would take up all places of their pool. The search goes on. */
  async #find(): Promise<Host> {
    this.#search ??= this.#pollHosts().finally(() => {
      this.#search = undefined
    })
    this.#search.catch(() => undefined)
    if (this.#lost !== undefined) throw this.#lost
    return await this.#search
  }

  // A host that hangs must not delay the others, so each round begins without waiting for the one before.
  async #pollHosts(): Promise<Host> {
    const { promise: found, resolve } = Promise.withResolvers<Host>()
    let refusal: Error | undefined
    const noteRefusal = (error: unknown) => {
      if (error instanceof Error && outageOutcome(error) === undefined) refusal = error
    }
    for (let waitedMs = 0; waitedMs < limits.answerMsMax; waitedMs += limits.searchMs) {
      for (const host of this.#hosts) probe(host).then(resolve, noteRefusal)
      const host = await Promise.race([found, pause(limits.searchMs)])
      if (host !== undefined) return this.#adopt(host)
    }
    this.#lost = new NoPrimary(refusal)
    throw this.#lost
  }

  #adopt(found: Host): Host {
    this.#known = found
    this.#lost = undefined
    this.#disconnect(host => host !== found)
    return found
  }

  #disconnect(isLost: (host: Host) => boolean): void {
    for (const [client, host] of this.#clients) if (isLost(host)) client.connection.stream.destroy()
  }

  /** Looks after the known host as long as there are connections. */
  #schedule(): void {
    if (this.#timer !== undefined) return
    const check = async () => {
      this.#timer = undefined
      if (this.#clients.size === 0) return
      const known = this.#known
      const failure =
        known &&
        (await probe(known).then(
          () => undefined,
          error => error,
        ))
      if (known !== undefined && failure !== undefined) this.#doubt(known)
      if (this.#known === undefined) {
        await this.#find().catch(() => undefined)
        // A host that refuses, for example because it has too many connections, may still answer on those.
        if (failure instanceof Silence && this.#known === undefined) this.#disconnect(host => host === known)
      }
      this.#schedule()
    }
    this.#timer = setTimeout(check, this.#known === undefined ? limits.searchMs : limits.checkMs).unref()
  }
}

class Silence extends Unavailable {
  constructor() {
    super('the host did not answer in time', 'nothing-done')
  }
}

/** @throws if the host does not accept writes */
async function probe(host: Host): Promise<Host> {
  const client = new pg.Client(host.address)
  // A frozen server accepts the connection, and then says nothing.
  let isSilent = false
  const timer = setTimeout(() => {
    isSilent = true
    client.connection.stream.destroy()
  }, limits.answerMsMax)
  client.on('error', () => undefined)
  try {
    await client.connect()
    if (!(await acceptsWrites(client))) throw new NoPrimary()
    return host
  } catch (error) {
    throw isSilent ? new Silence() : error
  } finally {
    clearTimeout(timer)
    client.end().catch(() => undefined)
  }
}

async function acceptsWrites(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ transaction_read_only: string }>('show transaction_read_only')
  return rows[0]?.transaction_read_only === 'off'
}
