import { sql, type Tx } from '../database/database.ts'
import type { Currency } from '../kernel/money.ts'
import * as ledger from '../ledger/ledger.ts'
import { lockMembers } from '../members/locks.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { cycleAfter } from '../pay-cycles/rules.ts'
import * as payRuns from '../pay-runs/pay-runs.ts'

const limits = {
  lockMsMax: 30_000,
  workMsMax: 10_000,
}

// Keeps each statement well below a second; closing a cycle of a million members takes a few hundred of them.
const membersMax = 5_000

/**
 * Closes a partner's open cycle once its last day is over, and opens the next one in the same transaction. Money that was not
 * withdrawn returns to the cycle's earned pay, which then equals the final deductions. Scheduled pay runs move to the next
 * cycle.
 *
 * No operation that moves pay can be half done: pay runs and refunds hold a share lock on the cycle, and completing a withdrawal
 * locks its member, which closing waits for. Such a withdrawal either counts in this cycle or finds the cycle closed. Idempotent:
 * a cycle is closed only while it is open and over, under its row lock.
 * @returns the closed and the newly opened cycle; undefined if the open cycle is not over
 */
export async function closeIfOver(
  tx: Tx,
  { partnerId, now }: { partnerId: string; now: Date },
): Promise<{ closed: payCycles.PayCycle; opened: payCycles.PayCycle } | undefined> {
  // Overlapping holders of the cycle's share lock can outlast the usual lock timeout. The statement timeout covers that wait and
  // the work.
  await sql`
    select set_config('lock_timeout', ${String(limits.lockMsMax)}, true),
           set_config('statement_timeout', ${String(limits.lockMsMax + limits.workMsMax)}, true)`.execute(tx)
  const cycle = await payCycles.lockOpen(tx, partnerId)
  const { timeZone, schedule } = await payCycles.readTerms(tx, partnerId)
  if (cycle === undefined || !payCycles.isOver(cycle, { timeZone, now })) return undefined
  await release(tx, { partnerId, payCycleId: cycle.id, now })
  const closed = await payCycles.markClosed(tx, { partnerId, cycle, now })
  const opened = await payCycles.open(tx, { partnerId, timeZone, span: cycleAfter(schedule, cycle), now })
  await payRuns.moveScheduled(tx, { partnerId, from: closed.id, to: opened.id })
  return { closed, opened }
}

// Locks members in id order, like every other operation. A member without an available balance cannot get one before the
// cycle closes: everything that could raise it needs the share lock on the cycle.
async function release(
  tx: Tx,
  { partnerId, payCycleId, now }: { partnerId: string; payCycleId: string; now: Date },
): Promise<void> {
  let memberIds: string[] = []
  do {
    memberIds = await lockMembersAfter(tx, { partnerId, after: memberIds.at(-1) ?? '' })
    // Must follow the locks, so that it sees the withdrawals that they waited for.
    const { rows } = await sql<{ memberId: string; currency: Currency; amount: bigint }>`
      select member_id, currency, available as amount from ledger_balances
       where partner_id = ${partnerId} and member_id = any(${memberIds}) and available > 0
       order by member_id, currency`.execute(tx)
    await ledger.post(tx, {
      partnerId,
      movementId: payCycleId,
      reason: 'pay_cycle.closed',
      transfers: rows.map(row => ({ debit: 'member_available', credit: 'earned_pay', payCycleId, ...row })),
      now,
    })
  } while (memberIds.length > 0)
}

async function lockMembersAfter(tx: Tx, { partnerId, after }: { partnerId: string; after: string }): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select distinct member_id as id from ledger_balances
     where partner_id = ${partnerId} and member_id > ${after} and available > 0
     order by member_id limit ${membersMax}`.execute(tx)
  const members = await lockMembers(tx, { partnerId, memberIds: rows.map(row => row.id) })
  return members.map(member => member.id)
}
