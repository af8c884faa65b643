import type { Duplex, Writable } from 'node:stream'
import {
  CamelCasePlugin,
  Kysely,
  type PluginTransformQueryArgs,
  type PluginTransformResultArgs,
  PostgresDialect,
  type PostgresPool,
  type QueryResult,
  type RootOperationNode,
  sql,
  type Transaction,
  type UnknownRow,
} from 'kysely'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import type { Logger } from 'pino'
import type { Lanes } from './batch.ts'
import { Deadline } from './deadline.ts'
import type { DB } from './tables.ts'

export { sql }

/** The database, outside any transaction. Only edges hold it. */
export type Db = Kysely<DB>

/** One open transaction. Operations take it first and never open or keep one themselves. */
export type Tx = Transaction<DB>

/** What a single statement runs on when it does not matter whether a transaction is open. */
export type Reader = Db | Tx

/** Opens what a `copy … from stdin` reads: rows in its text format, into the open transaction of the same connection. */
export type CopyInto = (statement: string) => Writable

/** One page of a list: how many entries to pass over, and how many to give. */
export type Page = { skip: number; take: number }

export type Connection = string | { host: string; user: string; database: string }

/** Waits that are longer than these are faults, and end as such instead of holding others up. */
const limits = {
  // A lock is held for one short transaction; the contract lets a repeated key wait for two seconds.
  lockTimeoutMs: 2_000,
  // The slowest statement, a first page over a million members, takes well under a second.
  statementTimeoutMs: 10_000,
  // A transaction that does nothing for this long belongs to a process that has lost its way.
  idleInTransactionTimeoutMs: 10_000,
  connectTimeoutMs: 5_000,
  // A request does not wait longer for a connection: by then its caller is better off trying again.
  requestConnectMs: 2_000,
  // A fifth of a second of reads on two cores: further requests are refused at once, while they can still be retried in time.
  requestsWaitingMax: 512,
}

const batchLimits = {
  // Batches lock rows without waiting. What is left is an idempotency key that another transaction is inserting, and a
  // batch that waits for one delays all its commands: after this time the command is retried alone.
  lockTimeoutMs: 50,
  // In the shared lane two batches of each of the two operations, and as many of the reads that are as frequent. With a
  // lane per partner eight batches of each operation.
  connectionsMax: { shared: 8, partner: 16 },
  // Plans end with their connection: those that were made while tables were empty are not kept for long.
  plansSecondsMax: 60,
}

/**
 * Opens the pool, and beside it the few connections of batches. Instants come back as `Date`, days as text, `bigint` columns
 * as bigint, and snake_case columns in camelCase.
 * @param connectionsMax of the pool; every process has its own
 * @param lanes as set for the batches, whose statements are planned accordingly
 */
export function connect(
  connection: Connection,
  { log, connectionsMax = 20, lanes = 'shared' }: { log: Logger; connectionsMax?: number; lanes?: Lanes },
): { db: Db; batchDb: Db; pool: pg.Pool; close(): Promise<void> } {
  const options: pg.PoolConfig = {
    ...(typeof connection === 'string' ? { connectionString: connection } : connection),
    application_name: 'openwage',
    max: connectionsMax,
    connectionTimeoutMillis: limits.connectTimeoutMs,
    lock_timeout: limits.lockTimeoutMs,
    statement_timeout: limits.statementTimeoutMs,
    idle_in_transaction_session_timeout: limits.idleInTransactionTimeoutMs,
    types: { getTypeParser },
  }
  const pool = openPool(options, log)
  const db = openKysely(leasing(pool))
  const batchDb = openKysely(preparing(openPool({ ...options, ...forBatches(lanes) }, log)))
  const close = async () => {
    await Promise.all([db.destroy(), batchDb.destroy()])
  }
  return { db, batchDb, pool, close }
}

function openKysely(pool: PostgresPool): Db {
  return new Kysely<DB>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new Columns()],
  })
}

class Columns extends CamelCasePlugin {
  // What stands in a `sql` text is snake_case already, and its parameters may be thousands: it is passed on as it is.
  override transformQuery(query: PluginTransformQueryArgs): RootOperationNode {
    return query.node.kind === 'RawNode' ? query.node : super.transformQuery(query)
  }

  // All rows of an answer have the same columns, whose names are found once, and what is in them is left alone.
  override async transformResult({ result }: PluginTransformResultArgs): Promise<QueryResult<UnknownRow>> {
    const [first] = result.rows
    if (first === undefined) return result
    const columns = Object.keys(first).map(column => ({ column, name: this.camelCase(column) }))
    const renamed = (row: UnknownRow) => {
      const named: UnknownRow = {}
      for (const { column, name } of columns) named[name] = row[column]
      return named
    }
    return { ...result, rows: result.rows.map(renamed) }
  }
}

const planSettings: Record<Lanes, string> = {
  // Statements of batches are planned once per connection, for arrays of any length. A plan made while a table was small
  // would scan all of it for good, so only index plans are allowed; and the costs that the planner then estimates must not
  // trigger compilation.
  shared: `set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set enable_hashjoin = off;
           set enable_mergejoin = off; set enable_bitmapscan = off; set jit = off`,
  // A distributed PostgreSQL routes a join with a list of values only if the plan has the partner's id as a constant.
  partner: 'set plan_cache_mode = force_custom_plan; set jit = off',
}

const forBatches = (lanes: Lanes): pg.PoolConfig => ({
  max: batchLimits.connectionsMax[lanes],
  maxLifetimeSeconds: batchLimits.plansSecondsMax,
  lock_timeout: batchLimits.lockTimeoutMs,
  pipeline: true,
  // Not among the connection's options: those of a DATABASE_URL would replace them.
  onConnect: client => client.query(planSettings[lanes]),
})

function leasing(pool: pg.Pool): PostgresPool {
  return {
    options: pool.options,
    connect: async () => forKysely(await lease(pool)),
    end: () => pool.end(),
  }
}

// Kysely's type of `query` has a second form, for cursors, which is not used here.
function forKysely({ query, release }: Pick<Lease, 'query' | 'release'>) {
  return { query, release } as never
}

type Lease = {
  client: pg.PoolClient
  query(text: string | pg.QueryConfig, values?: readonly unknown[]): Promise<pg.QueryResult>
  release(discard?: boolean): void
}

/**
 * Takes a connection from the pool for as long as the current deadline allows, and destroys the connection when the deadline
 * passes first: a server that does not answer cannot be asked to cancel either.
 * @throws Unavailable when no connection is free in time; later, from `query`, when the answer does not come in time
 */
async function lease(pool: pg.Pool): Promise<Lease> {
  const deadline = Deadline.current
  const client = await take(pool, deadline)
  // What the destroyed connection leaves behind: an open transaction is rolled back, unless its commit was on the way.
  let isInTransaction = false
  let cutOff: Unavailable | undefined
  const timer =
    deadline &&
    setTimeout(() => {
      cutOff = new Unavailable('the database did not answer in time', isInTransaction ? 'nothing-done' : 'unknown')
      destroy(client)
    }, deadline.leftMs)
  return {
    client,
    async query(text, values) {
      if (text === 'begin') isInTransaction = true
      else if (text === 'commit') isInTransaction = false
      try {
        return await client.query(text as string, values as unknown[])
      } catch (error) {
        throw cutOff ?? error
      }
    },
    release(discard) {
      clearTimeout(timer)
      client.release(discard || cutOff !== undefined)
    },
  }
}

async function take(pool: pg.Pool, deadline: Deadline | undefined): Promise<pg.PoolClient> {
  if (deadline === undefined) return await pool.connect()
  if (deadline.isSheddable && pool.waitingCount >= limits.requestsWaitingMax) {
    throw new Unavailable('too many requests wait for a database connection', 'nothing-done')
  }
  const connecting = pool.connect()
  // An idle connection is handed over in the next tick.
  if (pool.idleCount >= pool.waitingCount && pool.idleCount > 0) return await connecting
  return await new Promise((resolve, reject) => {
    let isLate = false
    const late = () => {
      isLate = true
      reject(new Unavailable('no database connection was free in time', 'nothing-done'))
    }
    const timer = setTimeout(late, Math.min(limits.requestConnectMs, deadline.leftMs))
    connecting.then(
      client => {
        clearTimeout(timer)
        if (isLate) client.release()
        else resolve(client)
      },
      error => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })
}

// Ending a client would wait for the answers that do not come.
function destroy(client: pg.PoolClient): void {
  destroyed.add(client)
  ;(client as pg.PoolClient & { connection: { stream: Duplex } }).connection.stream.destroy()
}

// Their loss is no news: it is told by what was cut off.
const destroyed = new WeakSet<pg.ClientBase>()

// Kysely knows no prepared statements; the driver makes one of every text that has a name.
function preparing(pool: pg.Pool): PostgresPool {
  const names = new Map<string, string>()
  const nameOf = (text: string) => {
    const name = names.get(text) ?? `batch_${names.size}`
    names.set(text, name)
    return name
  }
  return {
    options: pool.options,
    async connect() {
      const leased = await lease(pool)
      const send = (text: string, values: readonly unknown[]) =>
        values.length === 0
          ? leased.query(text)
          : leased.query({ name: nameOf(text), text, values: values.map(parameterOf) })
      let begun: Promise<unknown> | undefined
      // Nobody waits for a `begin` alone: it fails together with what follows it, which is on its way at once.
      const query = async (text: string, values: readonly unknown[]) => {
        const answering = send(text, values)
        if (text === 'begin') {
          begun = answering
          begun.catch(() => undefined)
          return { command: 'BEGIN', rows: [] }
        }
        const [answer] = await Promise.all([answering, begun])
        begun = undefined
        return answer
      }
      return forKysely({ query: query as Lease['query'], release: leased.release })
    },
    end: () => pool.end(),
  }
}

// A list as PostgreSQL reads it. The driver would write it too, at three times the cost, since it looks at each element for
// everything that it could be; lists of other than plain values are left to it.
function parameterOf(value: unknown): unknown {
  if (!Array.isArray(value) || value.some(each => typeof each === 'object' && each !== null)) return value
  return `{${value.map(elementOf).join(',')}}`
}

function elementOf(value: unknown): string {
  if (typeof value !== 'string') return String(value ?? 'null')
  return /["\\]/.test(value) ? `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"` : `"${value}"`
}

/**
 * A second, small pool to the same database, for a library that expects the driver's own types (`int8` as text). The
 * caller ends it.
 */
export function connectLike(pool: pg.Pool, { log, connectionsMax }: { log: Logger; connectionsMax: number }): pg.Pool {
  return openPool({ ...pool.options, max: connectionsMax, types: pg.types }, log)
}

/**
 * Does one thing on one connection, over which rows can also be copied into a table, faster than any insert. It is taken from
 * the pool only for as long as a transaction is open.
 * @param work its transactions follow each other, since there is one connection
 */
export async function withCopying<T>(pool: pg.Pool, work: (db: Db, copyInto: CopyInto) => Promise<T>): Promise<T> {
  let client: pg.PoolClient | undefined
  const connect = async () => {
    const leased = await lease(pool)
    client = leased.client
    return forKysely(leased)
  }
  const db = openKysely({ options: pool.options, connect, end: async () => undefined })
  return await work(db, statement => {
    if (client === undefined) throw new Error('Rows are copied within a transaction')
    return client.query(copyFrom(statement))
  })
}

// Without a listener the loss of a connection would end the process. The pool repeats what the client of an idle one says.
function openPool(options: pg.PoolConfig, log: Logger): pg.Pool {
  const pool = new pg.Pool(options)
  pool.on('error', () => undefined)
  pool.on('connect', client => {
    client.on('error', error => {
      // Whoever ends the pool knows.
      if (!pool.ending && !destroyed.has(client)) log.warn({ err: error }, 'lost a database connection')
    })
  })
  return pool
}

const { builtins } = pg.types

// The driver's defaults make text of int8, and a local midnight of a day.
function getTypeParser(oid: number, format?: 'text' | 'binary') {
  if (format === 'binary') return pg.types.getTypeParser(oid, format)
  if (oid === builtins.INT8) return BigInt
  if (oid === builtins.DATE) return (text: string) => text
  return pg.types.getTypeParser(oid, 'text')
}

/** Whether the error says that a lock was not to be had in time. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '55P03'
}

/** The database could not be asked, or did not answer before the deadline of the request. */
export class Unavailable extends Error {
  readonly outcome: 'nothing-done' | 'unknown'

  constructor(message: string, outcome: 'nothing-done' | 'unknown') {
    super(message)
    this.outcome = outcome
  }
}

/**
 * What an error of the database says about the transaction it struck. `nothing-done`: it was busy, or could not be reached;
 * trying again is right. `unknown`: the connection broke, perhaps while the server was committing. Undefined for any other.
 * Source: PostgreSQL error codes, classes 08, 25, 40, 53, 55 and 57; Node's network errors; the driver's own messages.
 */
export function outageOutcome(error: unknown): 'nothing-done' | 'unknown' | undefined {
  if (error instanceof Unavailable) return error.outcome
  if (error instanceof pg.DatabaseError) {
    // 25006 is a server that was made read-only, 25P03 a transaction that the server has ended because we had stalled.
    if (/^(25006|25P03|40|53|55P03|57014|57P03)/.test(error.code ?? '')) return 'nothing-done'
    return /^(08|57P)/.test(error.code ?? '') ? 'unknown' : undefined
  }
  // A name with several addresses (`localhost`) gives an error around one for each.
  const { code = '', message = '', syscall } = firstOf(error) as NodeJS.ErrnoException
  if (syscall === 'connect' || syscall === 'getaddrinfo' || /^(ECONNREFUSED|ENOENT)$/.test(code)) return 'nothing-done'
  if (/^timeout (exceeded when trying to connect|expired)|establishing an SSL connection/.test(message))
    return 'nothing-done'
  // Rolling back on a broken connection fails in its turn, and hides what broke it.
  const broken = /Connection terminated|not queryable|Client was closed|write EPIPE|read ECONNRESET/.test(message)
  return broken || /^(ECONNRESET|EPIPE|ETIMEDOUT)$/.test(code) ? 'unknown' : undefined
}

function firstOf(error: unknown): unknown {
  return error instanceof AggregateError ? error.errors[0] : error
}

/** Whether the error says that the server takes no writes: it was made read-only, or is a standby. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25006'
}

/** Whether the error says that a row with this key was there first. */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '23505'
}

/** The name of the constraint that an error says was broken, if it says so. */
export function brokenConstraint(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError && error.code?.startsWith('23') ? error.constraint : undefined
}

/**
 * Refuses a server that could forget what it has confirmed.
 * @throws with a sentence for the operator when a durability setting is off, or the server is older than 15
 */
export async function requireDurability(db: Db): Promise<void> {
  const { rows } = await sql<{ name: string; setting: string }>`
    select name, setting from pg_settings
     where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'server_version_num')`.execute(db)
  const setting = new Map(rows.map(row => [row.name, row.setting]))
  if (Number(setting.get('server_version_num')) < 150_000) {
    throw new Error('PostgreSQL is too old: Openwage needs version 15 or later')
  }
  for (const name of ['fsync', 'full_page_writes', 'synchronous_commit']) {
    if (setting.get(name) === 'off') {
      throw new Error(
        `PostgreSQL runs with ${name} = off: it could lose wages that were confirmed. Turn it on and start again`,
      )
    }
  }
}
