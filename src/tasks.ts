import type { Logger } from 'pino'
import { type Db, sql, type Tx } from './database/database.ts'
import type { Clock } from './time.ts'

/** Every background task: what the worker runs, and what operations schedule. */
export type TaskName =
  | 'submit-withdrawals'
  | 'ask-about-withdrawals'
  | 'read-rail-reports'
  | 'expire-intents'
  | 'make-pay-runs-available'
  | 'close-pay-cycles'
  | 'apply-member-jobs'
  | 'expire-member-jobs'
  | 'forget-member-jobs'
  | 'forget-idempotency-keys'
  | 'fold-float-changes'
  | 'number-event-feeds'
  | 'watch-floats'
  | 'forget-webhook-deliveries'

/** A task's dependencies. A task opens its own transactions and never calls an external system inside one. */
export type TaskContext = { db: Db; log: Logger; now: Clock }

/**
 * Looks for the rows that are due and acts on them. It needs no payload, may be killed at any point and run again, and may
 * run concurrently with itself.
 */
type Task = (context: TaskContext) => Promise<void>

export type Tasks = Record<TaskName, Task>

/**
 * Schedules a task in the caller's transaction. Each call adds a queue entry: with a shared job key, concurrent
 * transactions would wait for each other.
 */
export async function scheduleTask(tx: Tx, { task, at }: { task: TaskName; at: Date }): Promise<void> {
  // Adding a job notifies the workers, and PostgreSQL serialises the commits of notifying transactions. A batch's short
  // lock timeout must not apply to that wait.
  await sql`
    select set_config('lock_timeout', '2s', true), graphile_worker.add_job(${task}, run_at => ${at})`.execute(tx)
}
