import { type Reader, sql } from '../database/database.ts'

// The state of graphile-worker's queue, read from its tables.

/**
 * Tasks by name.
 * @property due including those that are running, the oldest first
 * @property givenUp those that have used up their retries; the worker's log has the errors
 */
export type QueuedTasks = {
  due: { task: string; count: number; oldestAt: Date }[]
  givenUp: { task: string; count: number }[]
}

export async function readTasks(db: Reader, now: Date): Promise<QueuedTasks> {
  const { rows } = await sql<{ task: string; count: number; oldestAt: Date; hasGivenUp: boolean }>`
    select task_identifier as task, count(*)::integer as count, min(run_at) as oldest_at,
           attempts >= max_attempts as has_given_up
      from graphile_worker.jobs where run_at <= ${now}
     group by task_identifier, has_given_up order by oldest_at`.execute(db)
  const select = (wanted: boolean) => rows.flatMap(({ hasGivenUp, ...of }) => (hasGivenUp === wanted ? [of] : []))
  return { due: select(false), givenUp: select(true).map(({ task, count }) => ({ task, count })) }
}

const failedMax = 100

/** Tasks that have failed and not succeeded since, newest failure first. Their errors quote values, so they stay in the queue. */
export async function listFailed(
  db: Reader,
): Promise<{ task: string; attempts: number; attemptsMax: number; failedAt: Date; nextAt: Date }[]> {
  const { rows } = await sql<{ task: string; attempts: number; attemptsMax: number; failedAt: Date; nextAt: Date }>`
    select task_identifier as task, attempts::integer, max_attempts::integer as attempts_max, updated_at as failed_at, run_at as next_at
      from graphile_worker.jobs where last_error is not null
     order by updated_at desc limit ${failedMax}`.execute(db)
  return rows
}
