import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { outageOutcome, Unavailable } from './errors.ts'

const limits = {
  // A host that does not say within this time whether it accepts writes counts as down. A search takes as long.
  answerMsMax: 1_000,
  // A frozen host, or one that is cut off, keeps its connections open: after this time they are looked at.
  checkMs: 2_000,
  // How often a search asks each host that answers.
  searchMs: 250,
  // The longest wait before a host that was unreachable is asked again. It may be the only one that can accept writes: with the next round
  // of a search and the second in which it answers, that stays within the three seconds in which writes must be back after a failover.
  backOffMsMax: 1_500,
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
export function clientOf(addresses: readonly string[], chance: Chance = real): typeof pg.Client {
  const primary = new Primary(addresses.map(address => new Host(address, chance)))
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

/** The time in milliseconds, and a random number from 0 to 1. Tests choose them. */
type Chance = { now(): number; random(): number }
const real: Chance = { now: () => performance.now(), random: Math.random }

/** When to ask a host again that was unreachable: after exponentially longer waits, with up to half of each as jitter. */
export class BackOff {
  readonly #chance: Chance
  #failures = 0
  #dueAt = Number.NEGATIVE_INFINITY

  constructor(chance: Chance) {
    this.#chance = chance
  }

  get isDue(): boolean {
    return this.#chance.now() >= this.#dueAt
  }

  /** Records that the host was unreachable. */
  fail(): void {
    const waitMs = Math.min(limits.backOffMsMax, limits.searchMs * 2 ** this.#failures)
    this.#failures += 1
    this.#dueAt = this.#chance.now() + waitMs * (1 - this.#chance.random() / 2)
  }

  /** Records that the host answered. */
  reset(): void {
    this.#failures = 0
    this.#dueAt = Number.NEGATIVE_INFINITY
  }
}

class Host {
  readonly host: string
  readonly port: number
  readonly #address: string
  readonly #backOff: BackOff
  /** Why the host, when it was last asked, refused us; undefined if it did not. */
  refusal: Error | undefined
  #probing: Promise<Host> | undefined

  constructor(address: string, chance: Chance) {
    const { host, port } = new pg.Client(address)
    this.host = host
    this.port = port
    this.#address = address
    this.#backOff = new BackOff(chance)
  }

  /**
   * Asks whether the host accepts writes; who asks meanwhile gets the same answer.
   * @returns undefined if it was unreachable a moment ago
   * @throws if it does not accept writes
   */
  probe(): Promise<Host> | undefined {
    if (this.#probing === undefined && !this.#backOff.isDue) return undefined
    this.#probing ??= this.#ask().finally(() => {
      this.#probing = undefined
    })
    return this.#probing
  }

  async #ask(): Promise<Host> {
    try {
      await requireWrites(this.#address)
      this.#backOff.reset()
      this.refusal = undefined
      return this
    } catch (error) {
      this.refusal = error instanceof Error && outageOutcome(error) === undefined ? error : undefined
      // A standby, and a server that starts, may accept writes soon.
      if (error instanceof NoPrimary || error instanceof pg.DatabaseError) this.#backOff.reset()
      else this.#backOff.fail()
      throw error
    }
  }
}

/** The host that accepts writes, and the connections to it. */
class Primary {
  readonly #hosts: readonly Host[]
  readonly #clients = new Map<pg.Client, Host>()
  #known: Host | undefined
  #search: Promise<Host> | undefined
  #lost: NoPrimary | undefined
  #isWatching = false

  constructor(hosts: readonly Host[]) {
    this.#hosts = hosts
  }

  async connect(client: pg.Client, connect: () => Promise<pg.Client>): Promise<pg.Client> {
    const host = this.#known ?? (await this.#find())
    this.#clients.set(client, host)
    client.once('end', () => this.#clients.delete(client))
    client.on('error', () => this.#doubt(host))
    if (!this.#isWatching) void this.#watch()
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
    for (let waitedMs = 0; waitedMs < limits.answerMsMax; waitedMs += limits.searchMs) {
      for (const host of this.#hosts) host.probe()?.then(resolve, () => undefined)
      const host = await Promise.race([found, pause(limits.searchMs)])
      if (host !== undefined) return this.#adopt(host)
    }
    this.#lost = new NoPrimary(this.#hosts.find(({ refusal }) => refusal !== undefined)?.refusal)
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
  async #watch(): Promise<void> {
    const wait = async () =>
      await pause(this.#known === undefined ? limits.searchMs : limits.checkMs, undefined, { ref: false })
    this.#isWatching = true
    await wait()
    while (this.#clients.size > 0) {
      await this.#check()
      await wait()
    }
    this.#isWatching = false
  }

  /** Finds another host if the known one fails. */
  async #check(): Promise<void> {
    const known = this.#known
    const failure = await known?.probe()?.then(
      () => undefined,
      error => error,
    )
    if (known !== undefined && failure !== undefined) this.#doubt(known)
    if (this.#known !== undefined) return
    const found = await this.#find().catch(() => undefined)
    // A host that refuses, for example because it has too many connections, may still answer on those.
    if (found === undefined && failure instanceof Silence) this.#disconnect(host => host === known)
  }
}

class Silence extends Unavailable {
  constructor() {
    super('the host did not answer in time', 'nothing-done')
  }
}

/** @throws if the host does not accept writes */
async function requireWrites(address: string): Promise<void> {
  const client = new pg.Client(address)
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
