import { type Reader, sql } from '../database/database.ts'
import { readSchemaState } from '../database/migrations.ts'
import type { Currency } from '../kernel/money.ts'
import type { Retention } from '../kernel/retention.ts'
import { listFailing } from '../notices/notices.ts'
import type { Mode } from '../partners/partners.ts'
import { readStops } from '../partners/read-stops.ts'
import type { Stop } from '../partners/stops.ts'
import * as batches from '../payouts/books/batches.ts'
import { listLastRemovals } from '../retention/retention.ts'
import * as inspection from '../withdrawals/inspection.ts'
import { readTasks } from '../worker/queue.ts'
import { readFacts } from './facts.ts'

const limits = {
  differencesMax: 5,
}

export type Asked = {
  mode: Mode
  rails: readonly { name: string; currency: Currency }[]
  retention: Retention
  now: Date
}

export type StatusFacts = Awaited<ReturnType<typeof readStatusFacts>>

/** Reads the facts behind the status. */
export async function readStatusFacts(db: Reader, { mode, rails, retention, now }: Asked) {
  const { rows } = await sql<{ version: string }>`select current_setting('server_version') as version`.execute(db)
  const facts = await readFacts(db, { retention, differencesMax: limits.differencesMax, now })
  const stopped: { id: string; name: string; paused: Stop | null; suspended: Stop | null }[] = []
  for (const partner of facts.partners.filter(({ paused, suspendedAt }) => paused || suspendedAt !== null)) {
    stopped.push({ id: partner.id, name: partner.name, ...(await readStops(db, partner)) })
  }
  const { due, givenUp } = await readTasks(db, now)
  return {
    ...facts,
    postgres: rows[0]?.version ?? 'unknown',
    toContract: (await readSchemaState(db)).toContract,
    mode,
    rails,
    batchesToApprove: await batches.countWaiting(db),
    queue: { due: due.reduce((sum, { count }) => sum + count, 0), oldestDueAt: due[0]?.oldestAt ?? null, givenUp },
    payouts: await inspection.countUnfinished(db, now),
    lowFloats: facts.floats.flatMap(({ floor, ...float }) =>
      floor !== null && float.free < floor ? [{ ...float, floor }] : [],
    ),
    uncovered: facts.floats.filter(({ uncovered }) => uncovered > 0n),
    stopped,
    removals: await listLastRemovals(db),
    failingNotices: await listFailing(db),
  }
}
