import { type Db, type Reader, sql } from '../database/database.ts'

export const limits = {
  /** A quarter of the silence after which a worker counts as dead, so that one lost heartbeat raises no alarm. */
  beatEveryMs: 15_000,
  silenceSecondsMax: 60,
  /** Long enough for an operator to see which worker went silent over a weekend. */
  keptDays: 7,
}

/** One worker process. `workerId` is new on each start, because process ids are reused. */
export type Worker = { workerId: string; host: string; processId: number }

/** Records a heartbeat by the database's clock, and deletes workers that have been silent for days. */
export async function beat(db: Db, { workerId, host, processId }: Worker): Promise<void> {
  await sql`
    insert into worker_heartbeats (worker_id, host, process_id, started_at, beat_at)
    values (${workerId}, ${host}, ${processId}, now(), now())
    on conflict (worker_id) do update set beat_at = now()`.execute(db)
  await sql`
    delete from worker_heartbeats where beat_at < now() - make_interval(days => ${limits.keptDays})`.execute(db)
}

/** Removes a worker that shuts down cleanly. A killed worker stays, and shows as silent. */
export async function signOff(db: Db, { workerId }: Worker): Promise<void> {
  await sql`delete from worker_heartbeats where worker_id = ${workerId}`.execute(db)
}

/** The workers of the last days, most recent heartbeat first. */
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
