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
 * @property redacted the sentence for what leaves the installation: it names no person, company, account or file
 */
export type Attention = { kind: keyof typeof rules; subject: string | null; sentence: string; redacted: string }

/** Everything that needs manual action. */
export function attentionOf(facts: StatusFacts, asked: Asked): Attention[] {
  return Object.entries<Rule>(rules).flatMap(([kind, rule]) =>
    [rule({ ...facts, ...asked })]
      .flat()
      .filter(found => found !== undefined)
      .map((found): Exclude<Found, string> => (typeof found === 'string' ? { sentence: found } : found))
      .map(({ subject = null, sentence, redacted = sentence }) => ({
        ...{ kind: kind as Attention['kind'], subject, sentence, redacted },
      })),
  )
}

type Found = string | { subject?: string; sentence: string; redacted?: string }
type Rule = (facts: StatusFacts & Asked) => Found | undefined | Found[]

const rules = {
  restored: ({ restore }) =>
    restore && `${restoreInWords(restore)}; see docs/operations/backups.md, then run midmonth payouts resume`,
  noBank: ({ mode, rails }) =>
    when(
      mode === 'live' && rails.length === 0,
      `No bank is connected in ${mode} mode, so withdrawals are refused; see docs/guides/go-live.md`,
    ),
  noWorker: ({ workers: [last, ...others], now }) => {
    if ([last, ...others].some(worker => worker?.isAlive)) return undefined
    return `No worker is running${last === undefined ? '' : ` (last seen ${ago(last.beatAt, now)})`}; start one with midmonth start --worker`
  },
  lateTasks: ({ workers, queue: { oldestDueAt }, now }) => {
    if (oldestDueAt === null || now.getTime() - oldestDueAt.getTime() <= limits.queueAgeMsMax) return undefined
    return when(
      workers.some(({ isAlive }) => isAlive),
      `The oldest task is ${duration(oldestDueAt, now)} overdue; check the worker’s log`,
    )
  },
  givenUpTask: ({ queue }) =>
    queue.givenUp.map(({ task: subject, count }) => ({
      subject,
      sentence: `Task ${subject} failed too often and will not be retried (${countOf(count, 'run')}); check the worker’s log`,
    })),
  stuckWithdrawals: ({ payouts: { held, submitted } }) =>
    when(
      held.stuck + submitted.stuck > 0,
      `${countOf(held.stuck + submitted.stuck, 'stuck withdrawal')}; see midmonth withdrawal list --stuck`,
    ),
  batchesToApprove: ({ batchesToApprove: count }) =>
    when(
      count > 0,
      `${countOf(count, 'batch', 'batches')} ${count === 1 ? 'waits' : 'wait'} for approval; see midmonth payouts list --status building`,
    ),
  openExceptions: ({ openExceptions: count }) =>
    when(count > 0, `${countOf(count, 'open payout exception')}; see midmonth payouts exceptions list`),
  unfinishedImport: ({ importing }) =>
    importing.map(file => ({
      subject: file.rail,
      sentence: `${progressInWords(file)}; unless an import runs, the worker continues it`,
      redacted: `A bank file is imported in part on ${file.rail}; unless an import runs, the worker continues it`,
    })),
  brakedRail: ({ brakes }) =>
    brakes.map(brake => ({
      subject: brake.rail,
      sentence: `No batch of ${brake.rail} is approved automatically. ${brakeInWords(brake)}`,
    })),
  bankDifference: ({ differences }) =>
    differences.map(({ id: subject, reason }) => ({
      subject,
      sentence: `${reason}; see midmonth payouts exceptions show ${subject}`,
      redacted: `The bank’s statements do not add up; see midmonth payouts exceptions show ${subject}`,
    })),
  lowFloat: ({ lowFloats }) =>
    lowFloats.map(({ partnerId, currency, free, floor }) => ({
      subject: `${partnerId} ${currency}`,
      sentence: `The float of ${partnerId} is low: ${inWords({ amount: free, currency })} free, floor ${inWords({ amount: floor, currency })}; top it up, then run midmonth float fund`,
    })),
  uncoveredFloat: ({ uncovered }) =>
    uncovered.map(({ partnerId, currency, uncovered: amount }) => ({
      subject: `${partnerId} ${currency}`,
      sentence: `The float of ${partnerId} lacks ${inWords({ amount, currency })} that the operator bears; pay it in, then run midmonth float cover`,
    })),
  pausedPartner: ({ stopped }) =>
    stopped.flatMap(({ id: subject, name, paused }) =>
      paused === null
        ? []
        : {
            subject,
            sentence: `${name} (${subject}) has been paused ${stopInWords(paused)}; resume it with midmonth partner resume`,
            redacted: `${subject} is paused; resume it with midmonth partner resume`,
          },
    ),
  failingArchive: ({ archiving }) =>
    and(failingArchiveInWords(archiving), 'see docs/operations/runbooks/archiving-failed.md'),
  overdueBackup: facts => and(backupOverdue(facts), 'run midmonth backup recorded after each backup'),
  asynchronousReplicas: asynchronousInWords,
  failingNotices: ({ failingNotices }) =>
    failingNotices.map(({ channel: subject, attempts, fault }) => ({
      subject,
      sentence: `Messages to operators by ${subject} do not arrive (${fault}, ${countOf(attempts, 'attempt')}); check ${subject === 'webhook' ? 'MIDMONTH_NOTIFY_WEBHOOK_URL' : 'MIDMONTH_SMTP_URL'}`,
    })),
  overdueRetention: ({ overdueKinds, retention }) => overdueInWords(overdueKinds, retention),
} satisfies Record<string, Rule>

function when(isSo: boolean, sentence: string): string | undefined {
  return isSo ? sentence : undefined
}

function and(fault: string | undefined, remedy: string): string | undefined {
  return fault === undefined ? undefined : `${fault}; ${remedy}`
}
