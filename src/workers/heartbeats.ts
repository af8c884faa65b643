import { type Db, type Reader, sql } from '../database/database.ts'

export const limits = {
  /** Several beats fit into the time after which a worker counts as gone, so that one lost beat raises no alarm. */
  beatEveryMs: 15_000,
  silenceSecondsMax: 60,
  /** An operator who looks in the morning still sees which worker went silent at night. */
  keptDays: 7,
}

/** One worker process. `workerId` is new with each start, since process ids come again. */
export type Worker = { workerId: string; host: string; processId: number }

/** Records that a worker is alive, by the database's clock, and forgets workers that have been silent for days. */
export async function beat(db: Db, { workerId, host, processId }: Worker): Promise<void> {
  await sql`
    insert into worker_heartbeats (worker_id, host, process_id, started_at, beat_at)
    values (${workerId}, ${host}, ${processId}, now(), now())
    on conflict (worker_id) do update set beat_at = now()`.execute(db)
  await sql`
    delete from worker_heartbeats where beat_at < now() - make_interval(days => ${limits.keptDays})`.execute(db)
}

/** Removes a worker that stops in order. One that is killed stays, and is seen to be silent. */
export async function signOff(db: Db, { workerId }: Worker): Promise<void> {
  await sql`delete from worker_heartbeats where worker_id = ${workerId}`.execute(db)
}

/** All workers of the last days, the latest sign of life first. */
export async function listWorkers(
  db: Reader,
): Promise<(Worker & { startedAt: Date; beatAt: Date; isAlive: boolean })[]> {
  const { rows } = await sql<Worker & { startedAt: Date; beatAt: Date; isAlive: boolean }>`
    select worker_id, host, process_id, started_at, beat_at,
           beat_at >= now() - make_interval(secs => ${limits.silenceSecondsMax}) as is_alive
      from worker_heartbeats
     order by beat_at desc, worker_id`.execute(db)
  return rows
}
