import { type Reader, sql } from './db.ts'

// What graphile-worker's tables say of the workers and their queue.

/** When a worker was last known to be alive; null when there never was one. */
export async function lastSeenWorker(db: Reader): Promise<Date | null> {
  // Each minute one of the workers starts the round of every task and records it here; the first one records its start. The
  // table is internal to the library, whose version is pinned: nothing public says it.
  const { rows } = await sql<{ seenAt: Date | null }>`
    select max(greatest(last_execution, known_since)) as seen_at from graphile_worker._private_known_crontabs`.execute(
    db,
  )
  return rows[0]?.seenAt ?? null
}

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
