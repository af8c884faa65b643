import type { Writable } from 'node:stream'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { type Db, type Origin, openKysely } from './database.ts'
import { type Begin, forKysely, lease } from './lease.ts'

/** Opens the input of a `copy … from stdin`: rows in its text format, written in the open transaction of the same connection. */
export type CopyInto = (statement: string) => Writable

/**
 * Runs work on one connection, over which rows can also be copied into a table, which is faster than any insert. The
 * connection is leased for one transaction at a time.
 * @param work its transactions share one connection, so they must not overlap
 */
export type WithCopying = <T>(work: (db: Db, copyInto: CopyInto) => Promise<T>) => Promise<T>

/** @param origin of what else is opened on the pool's database */
export function copying(pool: pg.Pool, origin: Origin, begin: Begin): WithCopying {
  return async work => {
    let client: pg.PoolClient | undefined
    const connect = async () => {
      const leased = await lease(pool, begin)
      client = leased.client
      return forKysely(leased)
    }
    const db = openKysely<Db>({ options: pool.options, connect, end: async () => undefined }, origin)
    return await work(db, statement => {
      if (client === undefined) throw new Error('Rows can only be copied within a transaction')
      return client.query(copyFrom(statement))
    })
  }
}
