import { type Reader, sql } from './database/database.ts'

// What graphile-worker's tables say of its queue.

export type Queue = {
  /** Tasks whose time has come, the ones that are running included. */
  due: number
  /** Since when the longest of them waits; null when none does. */
  oldestDueAt: Date | null
  /** Tasks that have failed too often and are not retried, by name. Their errors are in the log of the worker. */
  givenUp: { task: string; count: number }[]
}

export async function readQueue(db: Reader, now: Date): Promise<Queue> {
  const { rows } = await sql<{ task: string; count: number; oldest: Date; hasGivenUp: boolean }>`
    select task_identifier as task, count(*)::integer as count, min(run_at) as oldest,
           attempts >= max_attempts as has_given_up
      from graphile_worker.jobs where run_at <= ${now}
     group by task_identifier, has_given_up order by oldest`.execute(db)
  const due = rows.filter(({ hasGivenUp }) => !hasGivenUp)
  return {
    due: due.reduce((sum, { count }) => sum + count, 0),
    oldestDueAt: due[0]?.oldest ?? null,
    givenUp: rows.filter(({ hasGivenUp }) => hasGivenUp).map(({ task, count }) => ({ task, count })),
  }
}
