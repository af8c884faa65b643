import { type Db, sql, type Tx } from './database.ts'

/**
 * Replaces the usual limits of a connection until the end of the transaction: how long a statement waits for a lock, and how long it runs. A
 * distributed PostgreSQL passes on to its nodes what is set by `set local`, one setting in each statement, but not by `set_config`.
 */
export async function setWaitLimits(
  tx: Tx,
  { lockMsMax, statementMsMax }: { lockMsMax: number; statementMsMax: number },
): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(lockMsMax)}`.execute(tx)
  await sql`set local statement_timeout = ${sql.lit(statementMsMax)}`.execute(tx)
}

/** Runs a transaction that reads all rows of a table, which takes longer than a request may. */
export async function withoutLimit<T>(db: Db, read: (tx: Tx) => Promise<T>): Promise<T> {
  return await db.transaction().execute(async tx => {
    await sql`set local statement_timeout = 0`.execute(tx)
    return await read(tx)
  })
}
