import { type Reader, sql } from '../database/database.ts'
import * as float from '../float/float.ts'
import { type Currency, inWords } from '../kernel/money.ts'
import type { Retention } from '../kernel/retention.ts'
import { ago, countOf, duration } from '../kernel/text.ts'
import { listStates, type Mode } from '../partners/partners.ts'
import * as batches from '../payouts/books/batches.ts'
import { brakeInWords, listBrakes } from '../payouts/books/brakes.ts'
import * as exceptions from '../payouts/books/exceptions.ts'
import { listBegun } from '../payouts/books/import.ts'
import { listLastRemovals, overdueInWords } from '../retention/retention.ts'
import * as inspection from '../withdrawals/inspection.ts'
import { listWorkers } from '../worker/heartbeats.ts'
import { readQueue } from '../worker/queue.ts'
import { backupOverdue, readOverdue } from './overdue.ts'
import { readStops } from './partner-view.ts'
import { progressInWords } from './progress.ts'
import { type Stop, stopInWords } from './stops.ts'

const limits = {
  // A running worker picks up due tasks within a second or two.
  queueAgeMsMax: 2 * 60_000,
  // One neglected account must not hide everything else.
  differencesMax: 5,
}

type Asked = {
  mode: Mode
  rails: readonly { name: string; currency: Currency }[]
  retention: Retention
  now: Date
}

/** The health of the installation, and everything that needs attention. */
export type Status = Awaited<ReturnType<typeof readStatus>>

export async function readStatus(db: Reader, asked: Asked) {
  const facts = await readFacts(db, asked)
  return { ...facts, now: asked.now, attention: attentionOf(facts, asked) }
}

async function readFacts(db: Reader, { mode, rails, retention, now }: Asked) {
  const { rows } = await sql<{ version: string }>`select current_setting('server_version') as version`.execute(db)
  const partners = await listStates(db)
  const stopped: { id: string; name: string; paused: Stop | null; suspended: Stop | null }[] = []
  for (const partner of partners.filter(({ paused, suspendedAt }) => paused || suspendedAt !== null)) {
    stopped.push({ id: partner.id, name: partner.name, ...(await readStops(db, partner)) })
  }
  return {
    postgres: rows[0]?.version ?? 'unknown',
    mode,
    rails,
    batchesToApprove: await batches.countWaiting(db),
    openExceptions: await exceptions.countOpen(db),
    importing: await listBegun(db),
    brakes: await listBrakes(db),
    differences: await exceptions.listDifferences(db, { take: limits.differencesMax }),
    workers: await listWorkers(db),
    queue: await readQueue(db, now),
    payouts: await inspection.countUnfinished(db, now),
    lowFloats: await float.listLow(db),
    uncovered: await float.listUncovered(db),
    partners: partners.length,
    stopped,
    removals: await listLastRemovals(db),
    ...(await readOverdue(db, { retention, now })),
  }
}

/** Everything that needs manual action, one sentence each. */
function attentionOf(facts: Awaited<ReturnType<typeof readFacts>>, { retention, now }: Asked): string[] {
  const { mode, batchesToApprove, openExceptions, workers, payouts } = facts
  const hasNoWorker = !workers.some(({ isAlive }) => isAlive)
  const lastBeatAt = workers[0]?.beatAt
  const { oldestDueAt, givenUp } = facts.queue
  const isLate = oldestDueAt !== null && now.getTime() - oldestDueAt.getTime() > limits.queueAgeMsMax
  const backup = backupOverdue({ ...facts, now })
  const stuck = payouts.held.stuck + payouts.submitted.stuck
  const sentences = [
    mode === 'live' && facts.rails.length === 0
      ? `No bank is connected in ${mode} mode, so withdrawals are refused; see docs/guides/go-live.md`
      : undefined,
    hasNoWorker
      ? `No worker is running${lastBeatAt === undefined ? '' : ` (last seen ${ago(lastBeatAt, now)})`}; start one with midmonth start --worker`
      : undefined,
    isLate && !hasNoWorker
      ? `The oldest task is ${duration(oldestDueAt, now)} overdue; check the worker’s log`
      : undefined,
    ...givenUp.map(
      ({ task, count }) =>
        `Task ${task} failed too often and will not be retried (${countOf(count, 'run')}); check the worker’s log`,
    ),
    stuck > 0 ? `${countOf(stuck, 'stuck withdrawal')}; see midmonth withdrawal list --stuck` : undefined,
    batchesToApprove > 0
      ? `${countOf(batchesToApprove, 'batch', 'batches')} ${batchesToApprove === 1 ? 'waits' : 'wait'} for approval; see midmonth payouts list --status building`
      : undefined,
    openExceptions > 0
      ? `${countOf(openExceptions, 'open payout exception')}; see midmonth payouts exceptions list`
      : undefined,
    ...facts.importing.map(each => `${progressInWords(each)}; unless an import runs, the worker continues it`),
    ...facts.brakes.map(brake => `No batch of ${brake.rail} is approved automatically. ${brakeInWords(brake)}`),
    ...facts.differences.map(({ id, reason }) => `${reason}; see midmonth payouts exceptions show ${id}`),
    ...facts.lowFloats.map(
      ({ partnerId, currency, free, floor }) =>
        `The float of ${partnerId} is low: ${inWords({ amount: free, currency })} free, floor ${inWords({ amount: floor, currency })}; top it up, then run midmonth float fund`,
    ),
    ...facts.uncovered.map(
      ({ partnerId, currency, uncovered: amount }) =>
        `The float of ${partnerId} lacks ${inWords({ amount, currency })} that the operator bears; pay it in, then run midmonth float cover`,
    ),
    ...facts.stopped.map(({ id, name, paused }) =>
      paused === null
        ? undefined
        : `${name} (${id}) has been paused ${stopInWords(paused)}; resume it with midmonth partner resume`,
    ),
    backup === undefined ? undefined : `${backup}; run midmonth backup recorded after each backup`,
    overdueInWords(facts.overdueKinds, retention),
  ]
  return sentences.filter(sentence => sentence !== undefined)
}

/** Rails with the simulated bank for all other currencies are a rehearsal on a sandbox. */
export function bankOf({ mode, rails }: Pick<Status, 'mode' | 'rails'>): 'simulated' | 'connected' | null {
  if (rails.length > 0) return 'connected'
  return mode === 'sandbox' ? 'simulated' : null
}
