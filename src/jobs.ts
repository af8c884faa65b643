import type { Logger } from 'pino'
import { type Db, sql, type Tx } from './db.ts'
import type { Clock } from './time.ts'

/** What a background step may use. It opens its own transactions and never calls outside within one. */
export type JobContext = { db: Db; log: Logger; now: Clock }

/**
 * Background steps by name. Each looks for the rows that are due and acts on them, so that it needs no payload, may be cut
 * off anywhere and run again, and may run beside itself.
 */
export type Jobs = Record<string, (context: JobContext) => Promise<void>>

/**
 * Has the worker run a step at an instant; together with whatever else this transaction does, or not at all. One wake-up per
 * wish: a key that several share would make their transactions wait for each other.
 */
export async function wake(tx: Tx, { job, at }: { job: string; at: Date }): Promise<void> {
  // It notifies the workers, for which all committing transactions of the server take turns, each as long as its commit lasts:
  // a batch, which waits for locks no longer than a moment, must have the usual patience for that one.
  await sql`
    select set_config('lock_timeout', '2s', true), graphile_worker.add_job(${job}, run_at => ${at})`.execute(tx)
}
