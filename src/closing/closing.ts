import { sql, type Tx } from '../database/database.ts'
import * as ledger from '../ledger/ledger.ts'
import { lockMembers } from '../members/locks.ts'
import type { Currency } from '../money.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { cycleAfter } from '../pay-cycles/rules.ts'
import * as payRuns from '../pay-runs/pay-runs.ts'

// A statement over this many members takes well below a second. A cycle of a million members takes 200 of them.
const membersMax = 5_000

/**
 * Closes a partner's open cycle once its last day is over, and opens the next one, in one transaction. Pay that was not
 * withdrawn returns to the cycle's earned pay, whose balance is then final: the deductions. Pay runs in their grace period
 * move to the next cycle.
 *
 * No movement of pay can be half done: pay runs and refunds lock the cycle for share, and a withdrawal that is being completed
 * holds its member's lock. It either counts in this cycle, or finds the cycle closed. Idempotent: a cycle is closed only while
 * it is open and over, under its row's lock.
 * @returns the cycle that was closed and the one that was opened; undefined if the open one is not over
 */
export async function closeIfOver(
  tx: Tx,
  { partnerId, now }: { partnerId: string; now: Date },
): Promise<{ closed: payCycles.PayCycle; opened: payCycles.PayCycle } | undefined> {
  // Transactions that lock the cycle for share may overlap for longer than the ordinary lock timeout.
  await sql`set local lock_timeout = '30s'`.execute(tx)
  const cycle = await payCycles.lockOpen(tx, partnerId)
  const { timeZone, schedule } = await payCycles.readTerms(tx, partnerId)
  if (cycle === undefined || !payCycles.isOver(cycle, { timeZone, now })) return undefined
  await release(tx, { partnerId, payCycleId: cycle.id, now })
  const closed = await payCycles.markClosed(tx, { partnerId, cycle, now })
  const opened = await payCycles.open(tx, { partnerId, timeZone, span: cycleAfter(schedule, cycle), now })
  await payRuns.moveScheduled(tx, { partnerId, from: closed.id, to: opened.id })
  return { closed, opened }
}

// A member without available pay cannot gain any before the end: everything that could add to it locks the cycle for share.
async function release(
  tx: Tx,
  { partnerId, payCycleId, now }: { partnerId: string; payCycleId: string; now: Date },
): Promise<void> {
  let memberIds: string[] = []
  do {
    memberIds = await lockMembersAfter(tx, { partnerId, after: memberIds.at(-1) ?? '' })
    // Read after the locks: a withdrawal that held one has changed the balance.
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
