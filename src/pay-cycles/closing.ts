import { sql, type Tx } from '../database/database.ts'
import * as ledger from '../ledger/ledger.ts'
import type { Currency } from '../money.ts'
import * as payRuns from '../pay-runs/pay-runs.ts'
import * as payCycles from './pay-cycles.ts'
import { cycleAfter } from './rules.ts'

// Few enough for statements well below a second; a cycle of a million members is closed in some hundred of them.
const membersMax = 5_000

/**
 * Closes a partner's open cycle when its last day is over, and opens the next one, in one transaction: what members did
 * not withdraw goes back to the cycle's earned pay, so that what remains there are the deductions, for good. Pay runs that
 * still wait for their grace period move to the next cycle.
 *
 * Nothing that moves pay can be half way through: pay runs and money that is given back hold the cycle open, and a
 * withdrawal that is being completed holds its member, whom we wait for. It either counts in this cycle, or finds the
 * cycle closed. Twice is safe: a cycle is closed only while it is open and over, under its row's lock.
 * @returns the cycle that closed and the one that opened; undefined when the open one is not over
 */
export async function closeIfOver(
  tx: Tx,
  { partnerId, now }: { partnerId: string; now: Date },
): Promise<{ closed: payCycles.PayCycle; opened: payCycles.PayCycle } | undefined> {
  // Those that hold the cycle open may overlap for longer than others wait for a lock.
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

// Members in id order, as everybody locks them. Whoever has nothing now cannot have something before we are done: all
// that could raise it holds the cycle open.
async function release(
  tx: Tx,
  { partnerId, payCycleId, now }: { partnerId: string; payCycleId: string; now: Date },
): Promise<void> {
  let memberIds: string[] = []
  do {
    memberIds = await lockMembersAfter(tx, { partnerId, after: memberIds.at(-1) ?? '' })
    // Read after the locks: a withdrawal that we waited for has taken its share.
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
    with next as materialized (
      select distinct member_id as id from ledger_balances
       where partner_id = ${partnerId} and member_id > ${after} and available > 0
       order by member_id limit ${membersMax}
    )
    select id from members where partner_id = ${partnerId} and id in (select id from next)
     order by id for no key update of members`.execute(tx)
  return rows.map(row => row.id)
}
