import { sql, type Tx } from './database.ts'

type WaitLimits = { lockMsMax: number; statementMsMax: number }

/**
 * SQL that limits how long a statement waits for a lock, and how long it runs. A distributed PostgreSQL passes on to its nodes what is set
 * by `set local`, but neither the settings of the session nor `set_config`.
 */
export function waitLimits(set: 'set' | 'set local', { lockMsMax, statementMsMax }: WaitLimits): string {
  return `${set} lock_timeout = ${lockMsMax}; ${set} statement_timeout = ${statementMsMax}`
}

/** Replaces the usual limits of a connection until the end of the transaction. */
export async function setWaitLimits(tx: Tx, limits: WaitLimits): Promise<void> {
  await sql.raw(waitLimits('set local', limits)).execute(tx)
}
