import { sql, type Tx } from './database.ts'

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
