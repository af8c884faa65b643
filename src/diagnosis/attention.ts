import { inWords } from '../kernel/money.ts'
import { ago, countOf, duration } from '../kernel/text.ts'
import { stopInWords } from '../partners/stops.ts'
import { brakeInWords } from '../payouts/books/brakes.ts'
import { restoreInWords } from '../payouts/books/restores.ts'
import { overdueInWords } from '../retention/retention.ts'
import { progressInWords } from './progress.ts'
import { asynchronousInWords, backupOverdue, failingArchiveInWords } from './server-checks.ts'
import type { Asked, StatusFacts } from './status-facts.ts'

const limits = {
  // A running worker picks up due tasks within a second or two.
  queueAgeMsMax: 2 * 60_000,
}

/**
 * One thing that needs manual action.
 * @property kind and subject identify it for as long as it lasts, while the words of the sentence change
 * @property notice the sentence for what leaves the installation: it names no person, company, account or file
 */
export type Attention = { kind: AttentionKind; subject: string | null; sentence: string; notice: string }

type AttentionKind =
  | 'restored'
  | 'noBank'
  | 'noWorker'
  | 'lateTasks'
  | 'givenUpTask'
  | 'stuckWithdrawals'
  | 'batchesToApprove'
  | 'openExceptions'
  | 'unfinishedImport'
  | 'brakedRail'
  | 'bankDifference'
  | 'lowFloat'
  | 'uncoveredFloat'
  | 'pausedPartner'
  | 'failingArchive'
  | 'overdueBackup'
  | 'overdueRetention'
  | 'failingNotices'
  | 'asynchronousReplicas'

/** Everything that needs manual action. */
export function attentionOf(facts: StatusFacts, { retention, now }: Asked): Attention[] {
  const { mode, batchesToApprove, openExceptions, workers, payouts } = facts
  const hasNoWorker = !workers.some(({ isAlive }) => isAlive)
  const lastBeatAt = workers[0]?.beatAt
  const { oldestDueAt, givenUp } = facts.queue
  const isLate = oldestDueAt !== null && now.getTime() - oldestDueAt.getTime() > limits.queueAgeMsMax
  const backup = backupOverdue({ ...facts, now })
  const retentionSentence = overdueInWords(facts.overdueKinds, retention)
  const asynchronous = asynchronousInWords(facts)
  const failingArchive = failingArchiveInWords(facts.archiving)
  const stuck = payouts.held.stuck + payouts.submitted.stuck
  const all = [
    facts.restore !== undefined &&
      one('restored', {
        sentence: `${restoreInWords(facts.restore)}; see docs/operations/backups.md, then run midmonth payouts resume`,
      }),
    mode === 'live' &&
      facts.rails.length === 0 &&
      one('noBank', {
        sentence: `No bank is connected in ${mode} mode, so withdrawals are refused; see docs/guides/go-live.md`,
      }),
    hasNoWorker &&
      one('noWorker', {
        sentence: `No worker is running${lastBeatAt === undefined ? '' : ` (last seen ${ago(lastBeatAt, now)})`}; start one with midmonth start --worker`,
      }),
    isLate &&
      !hasNoWorker &&
      one('lateTasks', {
        sentence: `The oldest task is ${duration(oldestDueAt, now)} overdue; check the worker’s log`,
      }),
    ...givenUp.map(({ task, count }) =>
      one('givenUpTask', {
        subject: task,
        sentence: `Task ${task} failed too often and will not be retried (${countOf(count, 'run')}); check the worker’s log`,
      }),
    ),
    stuck > 0 &&
      one('stuckWithdrawals', {
        sentence: `${countOf(stuck, 'stuck withdrawal')}; see midmonth withdrawal list --stuck`,
      }),
    batchesToApprove > 0 &&
      one('batchesToApprove', {
        sentence: `${countOf(batchesToApprove, 'batch', 'batches')} ${batchesToApprove === 1 ? 'waits' : 'wait'} for approval; see midmonth payouts list --status building`,
      }),
    openExceptions > 0 &&
      one('openExceptions', {
        sentence: `${countOf(openExceptions, 'open payout exception')}; see midmonth payouts exceptions list`,
      }),
    ...facts.importing.map(file =>
      one('unfinishedImport', {
        subject: file.rail,
        sentence: `${progressInWords(file)}; unless an import runs, the worker continues it`,
        notice: `A bank file is imported in part on ${file.rail}; unless an import runs, the worker continues it`,
      }),
    ),
    ...facts.brakes.map(brake =>
      one('brakedRail', {
        subject: brake.rail,
        sentence: `No batch of ${brake.rail} is approved automatically. ${brakeInWords(brake)}`,
      }),
    ),
    ...facts.differences.map(({ id, reason }) =>
      one('bankDifference', {
        subject: id,
        sentence: `${reason}; see midmonth payouts exceptions show ${id}`,
        notice: `The bank’s statements do not add up; see midmonth payouts exceptions show ${id}`,
      }),
    ),
    ...facts.lowFloats.map(({ partnerId, currency, free, floor }) =>
      one('lowFloat', {
        subject: `${partnerId} ${currency}`,
        sentence: `The float of ${partnerId} is low: ${inWords({ amount: free, currency })} free, floor ${inWords({ amount: floor, currency })}; top it up, then run midmonth float fund`,
      }),
    ),
    ...facts.uncovered.map(({ partnerId, currency, uncovered: amount }) =>
      one('uncoveredFloat', {
        subject: `${partnerId} ${currency}`,
        sentence: `The float of ${partnerId} lacks ${inWords({ amount, currency })} that the operator bears; pay it in, then run midmonth float cover`,
      }),
    ),
    ...facts.stopped.map(
      ({ id, name, paused }) =>
        paused !== null &&
        one('pausedPartner', {
          subject: id,
          sentence: `${name} (${id}) has been paused ${stopInWords(paused)}; resume it with midmonth partner resume`,
          notice: `${id} is paused; resume it with midmonth partner resume`,
        }),
    ),
    failingArchive !== undefined &&
      one('failingArchive', { sentence: `${failingArchive}; see docs/operations/runbooks/archiving-failed.md` }),
    backup !== undefined &&
      one('overdueBackup', { sentence: `${backup}; run midmonth backup recorded after each backup` }),
    asynchronous !== undefined && one('asynchronousReplicas', { sentence: asynchronous }),
    ...facts.failingNotices.map(({ channel, attempts, fault }) =>
      one('failingNotices', {
        subject: channel,
        sentence: `Messages to operators by ${channel} do not arrive (${fault}, ${countOf(attempts, 'attempt')}); check ${channel === 'webhook' ? 'MIDMONTH_NOTIFY_WEBHOOK_URL' : 'MIDMONTH_SMTP_URL'}`,
      }),
    ),
    retentionSentence !== undefined && one('overdueRetention', { sentence: retentionSentence }),
  ]
  return all.filter(each => each !== false)
}

function one(
  kind: AttentionKind,
  { sentence, notice = sentence, subject = null }: { sentence: string; notice?: string; subject?: string | null },
): Attention {
  return { kind, subject, sentence, notice }
}
