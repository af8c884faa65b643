import type { RawBuilder } from 'kysely'
import { type Reader, sql } from '../database/database.ts'
import { addDays, dayIn, daysBetween, startOfDay } from '../kernel/time.ts'
import * as memberImports from '../member-imports/member-imports.ts'
import * as apiKeys from '../partners/api-keys.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import * as payRuns from '../pay-runs/pay-runs.ts'
import * as simulatedBank from '../payouts/channels/simulated/simulated-bank.ts'
import * as deliveries from '../webhooks/deliveries.ts'
import * as intents from '../withdrawals/intents.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'
import type { TaskName } from '../worker/task.ts'

/** What can fall due as a partner's clock moves, and the tasks that act on it. */
export const dueKinds = {
  member_job: ['apply-member-imports'],
  pay_run_available: ['make-pay-runs-available'],
  intent_expiry: ['expire-intents'],
  withdrawal_submission: ['submit-withdrawals'],
  bank_poll: ['ask-about-withdrawals'],
  bank_report: ['read-rail-reports'],
  review_expiry: ['expire-member-imports', 'apply-member-imports'],
  cycle_close: ['close-pay-cycles'],
  // The delivery of webhooks runs all the time, by the clock. A receiver may take 15 seconds to respond, and be down for days, so a move
  // neither stops at retries nor waits for them.
  webhook_retry: [],
  // The key is refused from then on; there is no work to do.
  key_expiry: [],
} as const satisfies Record<string, TaskName[]>
export type DueKind = keyof typeof dueKinds

/** The events to which a partner can ask to be moved. */
export const nextKinds = [
  'pay_run_available',
  'intent_expiry',
  'withdrawal_submission',
  'cycle_close',
  'bank_report',
] as const satisfies DueKind[]
export type NextKind = (typeof nextKinds)[number]

/**
 * `count`: how much is due now and not done yet. `workLeft`: a measure that falls while the work is being done. `next`: when more falls
 * due; null if nothing is ahead.
 */
export type Due = { kind: DueKind; count: number; workLeft: number; next: Date | null }

/**
 * Finds the work that is due for a partner, by kind.
 * @param after events that need no work, such as the expiry of a key, count if they fell due after this
 */
export async function readDue(
  db: Reader,
  { partnerId, after, now }: { partnerId: string; after: Date; now: Date },
): Promise<Due[]> {
  const work = {
    member_job: memberImports.dueWork({ partnerId }),
    review_expiry: memberImports.dueReviews({ partnerId }),
    pay_run_available: payRuns.due({ partnerId }),
    intent_expiry: intents.due({ partnerId }),
    withdrawal_submission: withdrawals.dueSubmissions({ partnerId }),
    bank_poll: withdrawals.duePolls({ partnerId, now }),
  }
  const passing = {
    bank_report: simulatedBank.dueReports({ partnerId, after }),
    key_expiry: apiKeys.dueExpiries({ partnerId, after }),
    webhook_retry: deliveries.dueRetries({ partnerId, after, now }),
  }
  const { rows } = await sql<Due>`
    with due as (${byKind(work)}), passing as (${byKind(passing)})
    select kind, count(*) filter (where at <= ${now})::integer as count,
           coalesce(sum(work) filter (where at <= ${now}), 0)::integer as work_left,
           min(at) filter (where at > ${now}) as next
      from due group by kind
    union all
    select kind, count(*) filter (where at > ${after} and at <= ${now})::integer, 0, min(at) filter (where at > ${now})
      from passing group by kind`.execute(db)
  const cycle = await cycleClose(db, { partnerId, now })
  return cycle === undefined ? rows : [...rows, cycle]
}

/** The instants that the slices give, each with its kind, in one statement. */
function byKind(instants: { [kind in DueKind]?: RawBuilder<{ at: Date }> }): RawBuilder<unknown> {
  const selections = Object.entries(instants).map(
    ([kind, each]) => sql`select ${sql.lit(kind)} as kind, d.* from (${each}) d`,
  )
  return sql.join(selections, sql` union all `)
}

async function cycleClose(db: Reader, { partnerId, now }: { partnerId: string; now: Date }): Promise<Due | undefined> {
  const cycle = await payCycles.findOpen(db, partnerId)
  if (cycle === undefined) return undefined
  const { timeZone } = await payCycles.readTerms(db, partnerId)
  const closesAt = startOfDay(timeZone, addDays(cycle.endDate, 1))
  const isOver = closesAt <= now
  const isReleasing = (await payCycles.findReleasing(db, partnerId)) !== undefined
  // Cycles that were overdue are closed one after the other, so the day shows whether there was progress. When a cycle ends, the
  // next one ends a day later or more, and the one that ended is still to be released.
  const daysLeft = isOver ? daysBetween(cycle.endDate, dayIn(timeZone, now)) : 0
  const workLeft = 2 * daysLeft + (isReleasing ? 1 : 0)
  return { kind: 'cycle_close', count: workLeft > 0 ? 1 : 0, workLeft, next: isOver ? null : closesAt }
}

/** Whether something of the kind stays due until it is done. */
export function staysDue(kind: DueKind): boolean {
  return kind !== 'bank_report' && kind !== 'webhook_retry' && kind !== 'key_expiry'
}
