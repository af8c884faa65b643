import { type Reader, sql } from '../database/database.ts'
import { addDays, dayIn, daysBetween, startOfDay } from '../kernel/time.ts'
import * as memberImports from '../member-imports/member-imports.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { feedDelayMs } from '../payouts/channels/simulated/simulated-bank.ts'
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

// A withdrawal about which the bank has been silent for hours is polled every hour. A clock that is moved by months polls once a day, which
// changes nothing for the partner and saves thousands of steps.
const quietPollDays = 1

/**
 * Finds the work that is due for a partner, by kind.
 * @param after events that need no work, such as the expiry of a key, count if they fell due after this
 */
export async function readDue(
  db: Reader,
  { partnerId, after, now }: { partnerId: string; after: Date; now: Date },
): Promise<Due[]> {
  const { rows } = await sql<Due>`
    with due (kind, at, work) as (
      select 'member_job', i.created_at, i.invite + i.update + i.reinstate + i.offboard + i.unchanged - i.steps_done + 1
        from member_imports i
       where i.partner_id = ${partnerId} and ${memberImports.canGoOn}
      union all
      select 'pay_run_available', r.scheduled_for, 1
        from pay_runs r join pay_cycles c on c.partner_id = r.partner_id and c.id = r.pay_cycle_id and c.status = 'Open'
       where r.partner_id = ${partnerId} and r.status = 'Scheduled'
      union all
      select 'intent_expiry', expires_at, 1 from withdrawal_intents where partner_id = ${partnerId} and status = 'pending'
      union all
      select 'withdrawal_submission', due_at, 1 from withdrawals
       where partner_id = ${partnerId} and status = 'held' and due_at is not null
      union all
      select 'bank_poll', case when attempts > ${withdrawals.attemptsQuietMax} and due_at > ${now}
                               then greatest(due_at, ${now}::timestamptz + make_interval(days => ${quietPollDays}))
                               else due_at end, 1
        from withdrawals
       where partner_id = ${partnerId} and status = 'submitted' and due_at is not null
      union all
      select 'review_expiry', coalesce(i.review_since, i.created_at) + make_interval(days => p.review_days), 1
        from member_imports i join partners p on p.id = i.partner_id
       where i.partner_id = ${partnerId} and i.ended_at is null and i.status = 'AwaitingReview'
    ), passing (kind, at) as (
      select 'bank_report', r.reported_at + ${feedDelayMs} * interval '1 ms'
        from simulated_bank_reports r left join payouts p on p.partner_id = r.partner_id and p.reference = r.reference
             left join withdrawals w on w.partner_id = p.partner_id and w.id = p.withdrawal_id
       where r.partner_id = ${partnerId} and r.reported_at > ${after}::timestamptz - ${feedDelayMs} * interval '1 ms'
         and r.outcome is distinct from w.status
      union all
      select 'key_expiry', expires_at from api_keys
       where partner_id = ${partnerId} and revoked_at is null and expires_at > ${after}
      union all
      select 'webhook_retry', d.due_at
        from webhook_deliveries d
        join webhook_endpoints w on w.partner_id = d.partner_id and w.id = d.endpoint_id and w.enabled
       where d.partner_id = ${partnerId} and d.scheduled_count > 0 and d.due_at > ${after} and d.due_at <= ${now}
    )
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

async function cycleClose(db: Reader, { partnerId, now }: { partnerId: string; now: Date }): Promise<Due | undefined> {
  const cycle = await payCycles.findOpen(db, partnerId)
  if (cycle === undefined) return undefined
  const { timeZone } = await payCycles.readTerms(db, partnerId)
  const closesAt = startOfDay(timeZone, addDays(cycle.endDate, 1))
  const isOver = closesAt <= now
  // Cycles that were overdue are closed one after the other, so the day shows whether there was progress.
  const workLeft = isOver ? daysBetween(cycle.endDate, dayIn(timeZone, now)) : 0
  return { kind: 'cycle_close', count: isOver ? 1 : 0, workLeft, next: isOver ? null : closesAt }
}

/** Whether something of the kind stays due until it is done. */
export function staysDue(kind: DueKind): boolean {
  return kind !== 'bank_report' && kind !== 'webhook_retry' && kind !== 'key_expiry'
}
