import { type Reader, sql } from '../database/database.ts'
import { readArchiving, readReplication } from '../database/durability.ts'
import { readSchemaState } from '../database/migrations.ts'
import * as float from '../float/float.ts'
import type { Currency } from '../kernel/money.ts'
import type { Retention } from '../kernel/retention.ts'
import { listFailing } from '../notices/notices.ts'
import { listStates, type Mode } from '../partners/partners.ts'
import { readStops } from '../partners/read-stops.ts'
import type { Stop } from '../partners/stops.ts'
import * as batches from '../payouts/books/batches.ts'
import { listBrakes } from '../payouts/books/brakes.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import { listBegun } from '../payouts/books/import.ts'
import { findRestore } from '../payouts/books/restores.ts'
import { listLastRemovals } from '../retention/retention.ts'
import * as inspection from '../withdrawals/inspection.ts'
import { listWorkers } from '../worker/heartbeats.ts'
import { readQueue } from '../worker/queue.ts'
import { readOverdue } from './overdue.ts'

const limits = {
  // One neglected account must not hide everything else.
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
  const partners = await listStates(db)
  const stopped: { id: string; name: string; paused: Stop | null; suspended: Stop | null }[] = []
  for (const partner of partners.filter(({ paused, suspendedAt }) => paused || suspendedAt !== null)) {
    stopped.push({ id: partner.id, name: partner.name, ...(await readStops(db, partner)) })
  }
  return {
    postgres: rows[0]?.version ?? 'unknown',
    toContract: (await readSchemaState(db)).toContract,
    mode,
    rails,
    batchesToApprove: await batches.countWaiting(db),
    openExceptions: await exceptions.countOpen(db),
    importing: await listBegun(db),
    brakes: await listBrakes(db),
    restore: await findRestore(db),
    archiving: await readArchiving(db),
    differences: await exceptions.listDifferences(db, { take: limits.differencesMax }),
    workers: await listWorkers(db),
    queue: await readQueue(db, now),
    payouts: await inspection.countUnfinished(db, now),
    lowFloats: await float.listLow(db),
    uncovered: await float.listUncovered(db),
    partners: partners.length,
    stopped,
    removals: await listLastRemovals(db),
    failingNotices: await listFailing(db),
    replication: await readReplication(db),
    ...(await readOverdue(db, { retention, now })),
  }
}
