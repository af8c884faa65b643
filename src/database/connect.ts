import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import type { Lanes } from '../kernel/lanes.ts'
import { copying, type WithCopying } from './copy.ts'
import { type BatchDb, type Db, type Origin, openKysely } from './database.ts'
import { isNotReady } from './errors.ts'
import { addressesOf, clientOf, NoPrimary } from './hosts.ts'
import { abandon, leasing, openPool } from './lease.ts'
import { programName } from './migrations.ts'
import { preparing } from './prepared.ts'

export type Connection = string | { host: string; user: string; database: string }

/** Connections to one database, named by their purpose. */
export type Databases = {
  db: Db
  batchDb: BatchDb
  withCopying: WithCopying
  /** The driver's pool below `db`: for migrations, the job queue and tests. */
  pool: pg.Pool
  /** The pools that metrics show, by what they are for; the worker's queue has another. */
  pools: Record<'operations' | 'batches', pg.Pool>
  /** Chooses the lanes of batches by what the database is; call it before the first batch. */
  useLanes(lanes: Lanes): void
  /** From now on, connecting takes no longer than requests can wait. */
  endStart(): void
  close(): Promise<void>
  /** After `close`, ends what a server that hangs keeps open. */
  abandon(): void
}

// A wait beyond its limit is a fault: it ends with an error instead of blocking others.
const limits = {
  // A lock is held for one short transaction; the contract lets a repeated key wait for two seconds.
  lockMsMax: 2_000,
  // The slowest statement, a first page over a million members, takes well under a second.
  statementMsMax: 10_000,
  // A transaction that is idle for this long belongs to a process that hangs.
  idleInTransactionMsMax: 10_000,
  connectMsMax: 5_000,
  // Node then asks once a second, and gives up after ten questions.
  keepAliveMs: 10_000,
}

const startLimits = {
  // A machine that has just booted starts everything at once, and a process that is still loading modules reads no replies.
  connectMsMax: 60_000,
  // After this time, the log says what startup is waiting for.
  noticeMs: 5_000,
  retryMs: 250,
}

const batchLimits = {
  // Batches lock rows without waiting. They wait only for an idempotency key that another transaction is inserting. That
  // wait delays all commands of the batch, so after this time the command is retried on its own.
  lockMsMax: 50,
  // The shared lane runs two batches of each of the two operations, and as many batches of the equally frequent reads. With a
  // lane per partner, there are eight batches of each operation.
  connectionsMax: { shared: 8, partner: 16 },
  // A plan lives as long as its connection. A plan made while tables were empty must not live long.
  planSecondsMax: 60,
}

/**
 * Opens the pool for ordinary operations, and a small separate pool for batches. Instants are returned as `Date`, days
 * as text, `bigint` columns as bigint, and snake_case columns in camelCase.
 * @param connectionsMax the size of the pool; every process has its own pool
 * @param lanes the lanes of batches, which decide how statements of batches are planned
 * @param isStarting whether connecting may take a minute, until `endStart` is called
 */
export function connect(
  connection: Connection,
  {
    log,
    connectionsMax = 20,
    lanes = 'shared',
    isStarting = false,
  }: { log: Logger; connectionsMax?: number; lanes?: Lanes; isStarting?: boolean },
): Databases {
  const options: pg.PoolConfig = {
    ...targetOf(connection),
    application_name: programName,
    max: connectionsMax,
    connectionTimeoutMillis: isStarting ? startLimits.connectMsMax : limits.connectMsMax,
    onConnect: client => client.query(timeOuts(limits.lockMsMax)),
    // The worker listens on a connection that may be silent for hours, and firewalls forget silent connections.
    keepAlive: true,
    keepAliveInitialDelayMillis: limits.keepAliveMs,
    types: { getTypeParser },
  }
  const pool = openPool(options, log)
  const closing = new AbortController()
  const origin: Origin = { lanes, closed: closing.signal }
  // A distributed PostgreSQL passes on to its nodes what is set by `set local`, but nothing of the session.
  const begin = (lockMsMax: number) => () =>
    origin.lanes === 'partner' ? `set local lock_timeout = ${lockMsMax}` : undefined
  const db = openKysely<Db>(leasing(pool, begin(limits.lockMsMax)), origin)
  const batchPool = openPool({ ...options, ...batchOptions(origin) }, log)
  const batchDb = openKysely<BatchDb>(preparing(batchPool, begin(batchLimits.lockMsMax)), origin)
  const close = async () => {
    closing.abort()
    await Promise.all([db.destroy(), batchDb.destroy()])
    // Kysely leaves a pool open that it has run no query on.
    await Promise.all([pool, batchPool].filter(each => !each.ending).map(each => each.end()))
  }
  const useLanes = (chosen: Lanes) => {
    origin.lanes = chosen
    batchPool.options.max = batchLimits.connectionsMax[chosen]
  }
  const endStart = () => {
    for (const each of [pool, batchPool]) limitConnecting(each)
  }
  const pools = { operations: pool, batches: batchPool }
  return {
    db,
    batchDb,
    withCopying: copying(pool, origin, begin(limits.lockMsMax)),
    pool,
    pools,
    useLanes,
    endStart,
    close,
    abandon: () => [pool, batchPool].forEach(abandon),
  }
}

function targetOf(connection: Connection): pg.PoolConfig {
  if (typeof connection !== 'string') return connection
  const addresses = addressesOf(withoutName(connection))
  const [connectionString] = addresses
  return { connectionString, ...(addresses.length > 1 ? { Client: clientOf(addresses) } : {}) }
}

// A name in the address would take precedence, and migrations find running programs by theirs.
const withoutName = (url: string) => url.replace(/(?<=[?&])application_name=[^&]*/, '')

/** From now on, connecting takes no longer than requests and tasks can wait. */
export function limitConnecting(pool: pg.Pool): void {
  pool.options.connectionTimeoutMillis = limits.connectMsMax
}

/**
 * Makes the first connection of a pool. Startup waits for a server that does not answer, or is recovering from a crash. A long wait
 * is logged, so that startup does not seem to hang.
 */
export async function connectFirst(pool: pg.Pool, log: Logger): Promise<void> {
  const { noticeMs, retryMs } = startLimits
  const { connectionTimeoutMillis: waitMsMax = 0 } = pool.options
  const isPatient = waitMsMax > noticeMs
  const began = performance.now()
  const logWait = () =>
    log.warn(
      `PostgreSQL has accepted no connection for ${noticeMs / 1_000} s: waiting, for at most ${waitMsMax / 1_000} s`,
    )
  const notice = isPatient ? setTimeout(logWait, noticeMs) : undefined
  try {
    for (;;) {
      try {
        const client = await pool.connect()
        return client.release()
      } catch (error) {
        const isTemporary = isNotReady(error) || (error instanceof NoPrimary && error.refusal === undefined)
        if (!isPatient || !isTemporary || performance.now() - began > waitMsMax) throw error
      }
      await pause(retryMs)
    }
  } finally {
    clearTimeout(notice)
  }
}

const planSettings: Record<Lanes, string> = {
  // Statements of batches are planned once per connection, for arrays of any length. A plan made while a table was small
  // would later scan the whole table, so only plans over indexes are allowed. JIT would compile statements that look
  // expensive under these settings, which costs more than it saves.
  shared: `set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set enable_hashjoin = off;
           set enable_mergejoin = off; set enable_bitmapscan = off; set jit = off`,
  // A distributed PostgreSQL routes a join with a list of values only if the plan has the partner's id as a constant.
  partner: 'set plan_cache_mode = force_custom_plan; set jit = off',
}

const batchOptions = (origin: Origin): pg.PoolConfig => ({
  max: batchLimits.connectionsMax[origin.lanes],
  maxLifetimeSeconds: batchLimits.planSecondsMax,
  pipeline: true,
  onConnect: client => client.query(`${timeOuts(batchLimits.lockMsMax)}; ${planSettings[origin.lanes]}`),
})

// Not set as connection options: a pooler refuses or drops them, and the options of a DATABASE_URL would replace them.
const timeOuts = (lockMsMax: number) =>
  `set lock_timeout = ${lockMsMax}; set statement_timeout = ${limits.statementMsMax};
   set idle_in_transaction_session_timeout = ${limits.idleInTransactionMsMax}`

/** Opens a second, small pool to the same database for the job queue, which expects the driver's own types (`int8` as text). */
export function openQueuePool(
  pool: pg.Pool,
  { log, connectionsMax }: { log: Logger; connectionsMax: number },
): pg.Pool {
  return openPool({ ...pool.options, max: connectionsMax, types: pg.types }, log)
}

const { builtins } = pg.types

// By default the driver returns int8 as text, and a day as midnight in the local time zone.
function getTypeParser(oid: number, format?: 'text' | 'binary') {
  if (format === 'binary') return pg.types.getTypeParser(oid, format)
  if (oid === builtins.INT8) return BigInt
  if (oid === builtins.DATE) return (text: string) => text
  return pg.types.getTypeParser(oid, 'text')
}
