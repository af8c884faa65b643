import { Duplex } from 'node:stream'
import type { PostgresPool } from 'kysely'
import pg from 'pg'
import type { Logger } from 'pino'
import { Deadline } from '../kernel/deadline.ts'
import { sql } from './database.ts'
import { isOutdatedPlan, nameConstraint, Unavailable } from './errors.ts'
import { parameterOf } from './parameters.ts'

const limits = {
  // A request waits no longer for a connection: after that, its caller should retry.
  requestConnectMsMax: 2_000,
  // 0.2 s of reads on two cores. Further requests are refused immediately, while their callers still have time to retry.
  requestsWaitingMax: 512,
}

export type Lease = {
  client: pg.PoolClient
  query(text: string | pg.QueryConfig, values?: readonly unknown[]): Promise<pg.QueryResult>
  release(discard?: boolean): void
}

/** Whether a statement begins a transaction: Kysely names an isolation level only in `start transaction`. */
export const isBegin = (text: unknown) => typeof text === 'string' && /^(begin|start transaction)\b/.test(text)

/** Gives a statement to send with `begin`, if there is one. */
export type Begin = () => string | undefined

/**
 * Takes a connection from the pool for as long as the current deadline allows. If the deadline passes first, the connection is
 * destroyed, because a server that does not answer cannot be asked to cancel the query.
 * @throws Unavailable if no connection is free in time; later, from `query`, if the database does not answer in time
 */
export async function lease(pool: pg.Pool, begin: Begin): Promise<Lease> {
  const deadline = Deadline.current
  const client = await acquire(pool, deadline)
  // Decides the outcome if the connection is destroyed: an open transaction is rolled back, unless its commit was already sent.
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
      const begins = isBegin(text)
      if (begins) isInTransaction = true
      else if (text === 'commit') isInTransaction = false
      try {
        const answer = client.query(text as string, values as unknown[])
        const next = begins ? begin() : undefined
        if (next !== undefined) await Promise.all([answer, client.query(next)])
        return await answer
      } catch (error) {
        nameConstraint(error)
        throw cutOff ?? error
      }
    },
    release(discard) {
      clearTimeout(timer)
      client.release(discard || cutOff !== undefined)
    },
  }
}

async function acquire(pool: pg.Pool, deadline: Deadline | undefined): Promise<pg.PoolClient> {
  if (deadline === undefined) return await pool.connect()
  if (deadline.isSheddable && pool.waitingCount >= limits.requestsWaitingMax) {
    throw new Unavailable('too many requests are waiting for a database connection', 'nothing-done')
  }
  // An expired deadline would destroy the connection at once.
  if (deadline.leftMs === 0) throw new Unavailable('the deadline passed before the query', 'nothing-done')
  const connecting = pool.connect()
  // An idle connection is handed over in the next tick.
  if (pool.idleCount >= pool.waitingCount && pool.idleCount > 0) return await connecting
  return await new Promise((resolve, reject) => {
    let isLate = false
    const late = () => {
      isLate = true
      reject(new Unavailable('no database connection was free in time', 'nothing-done'))
    }
    const timer = setTimeout(late, Math.min(limits.requestConnectMsMax, deadline.leftMs))
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

// Ending the client would wait for replies that do not come.
function destroy(client: pg.PoolClient): void {
  destroyed.add(client)
  socketOf(client).destroy()
}

/**
 * The driver cannot close a connection without waiting for the server, so we destroy the socket. The socket is in the driver's
 * types but not in its manual: `openPool` calls this function for every new connection, so that a driver without the socket
 * fails at the first connection, not when a deadline passes.
 */
function socketOf({ connection }: pg.ClientBase & { connection?: { stream?: unknown } }): Duplex {
  if (connection?.stream instanceof Duplex) return connection.stream
  throw new Error('pg no longer has client.connection.stream: find another way to destroy a connection')
}

// Connections that a deadline has cut off; their loss is not logged.
const destroyed = new WeakSet<pg.ClientBase>()

const clientsOf = new WeakMap<pg.Pool, Set<pg.PoolClient>>()

/** Destroys the connections of a pool whose server hangs, so that they do not keep the process alive. */
export function abandon(pool: pg.Pool): void {
  for (const client of clientsOf.get(pool) ?? []) destroy(client)
}

/** Opens a pool whose lost connections are logged. Without a listener, losing one would end the process. */
export function openPool(options: pg.PoolConfig, log: Logger): pg.Pool {
  const pool = new pg.Pool(options)
  // The pool repeats the errors of idle clients, which are logged below.
  pool.on('error', () => undefined)
  const clients = new Set<pg.PoolClient>()
  clientsOf.set(pool, clients)
  pool.on('connect', client => {
    socketOf(client)
    clients.add(client)
    client.once('end', () => clients.delete(client))
    client.on('error', error => {
      if (!pool.ending && !destroyed.has(client)) log.warn({ err: error }, 'lost a database connection')
    })
  })
  return pool
}

const mark = '/* planned once */'

/**
 * Begins the SQL of a statement that is planned once per connection: it looks into all partitions of a table, and planning that for
 * each call takes twenty times as long as running it.
 */
export const plannedOnce = sql.raw(mark)

/** Gives each text a name: the driver prepares a statement that has one, once per connection. */
export function statementNames(prefix: string): (text: string) => string {
  const names = new Map<string, string>()
  return text => {
    const name = names.get(text) ?? `${prefix}_${names.size}`
    names.set(text, name)
    return name
  }
}

/** Gives Kysely connections that end with the deadline of the request. */
export function leasing(pool: pg.Pool, begin: Begin): PostgresPool {
  const nameOf = statementNames('read')
  return {
    options: pool.options,
    async connect() {
      const leased = await lease(pool, begin)
      let isOutdated = false
      const query = async (text: string, values: readonly unknown[] = []) => {
        const given = values.map(parameterOf)
        if (!text.trimStart().startsWith(mark)) return await leased.query(text, given)
        return await leased.query({ name: nameOf(text), text, values: given }).catch(error => {
          if (isOutdatedPlan(error)) isOutdated = true
          throw error
        })
      }
      // As for the connections of batches: a migration has altered a column that the statement returns.
      return forKysely({ query: query as Lease['query'], release: () => leased.release(isOutdated) })
    },
    end: () => pool.end(),
  }
}

/** Kysely's type of `query` has an overload for cursors, which is not used here. */
export function forKysely({ query, release }: Pick<Lease, 'query' | 'release'>) {
  return { query, release } as never
}
