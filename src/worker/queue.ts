import { type Reader, sql } from '../database/database.ts'

// The state of graphile-worker's queue, read from its tables.

export type Queue = {
  /** Due tasks, including those that are running. */
  due: number
  /** When the oldest due task became due; null if none is due. */
  oldestDueAt: Date | null
  dueByTask: { task: string; count: number; oldestAt: Date }[]
  /** Tasks that have used up their retries, by name. The worker's log has the errors. */
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
    dueByTask: due.map(({ task, count, oldest }) => ({ task, count, oldestAt: oldest })),
    givenUp: rows.filter(({ hasGivenUp }) => hasGivenUp).map(({ task, count }) => ({ task, count })),
  }
}
