import { type Reader, sql } from './database.ts'
import { isLockTimeout } from './errors.ts'
import { isSpread } from './spread.ts'

/** The tables that are partitioned by the month of their ids. */
const partitioned = ['events', 'ledger_transfers'] as const

/**
 * Makes the partitions of this month and the next. Idempotent. A partition whose table is locked is left to the next call: there is a
 * month for it, and until then its rows go into the default partition.
 */
export async function makePartitions(db: Reader): Promise<void> {
  // One transaction each, so that the lock of one table is not held while waiting for the other.
  for (const table of partitioned) await unlessLocked(sql`select make_partitions(${table})`.execute(db))
}

/**
 * Drops partitions of events that were all written before an instant, and at least 30 days ago, and that nothing still needs.
 * @returns the names of the partitions
 */
export async function dropOldEvents(db: Reader, { writtenBefore }: { writtenBefore: Date }): Promise<string[]> {
  const dropped = await unlessLocked(
    sql<{ names: string[] }>`select drop_old_events(${writtenBefore}) as names`.execute(db),
  )
  return dropped?.rows[0]?.names ?? []
}

/** The default partitions with rows: those of months without a partition. */
export async function defaultPartitionsInUse(db: Reader): Promise<string[]> {
  const names = partitioned.map(table => `${table}_default`)
  // By size, which needs no right to read the partition.
  const size = sql.raw((await isSpread(db)) ? 'citus_relation_size' : 'pg_relation_size')
  const { rows } = await sql<{ name: string }>`
    select name from unnest(${names}::text[]) as name where ${size}(name::regclass) > 0`.execute(db)
  return rows.map(({ name }) => name)
}

async function unlessLocked<Result>(running: Promise<Result>): Promise<Result | undefined> {
  try {
    return await running
  } catch (error) {
    if (isLockTimeout(error)) return undefined
    throw error
  }
}
