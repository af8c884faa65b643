import { sql, type Tx } from '../database/database.ts'
import { setWaitLimits } from '../database/wait-limits.ts'
import * as ledger from '../ledger/ledger.ts'
import { lockMembers } from '../members/locks.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { cycleAfter } from '../pay-cycles/rules.ts'
import * as payRuns from '../pay-runs/pay-runs.ts'

const limits = {
  lockMsMax: 30_000,
  // A locked member must not delay the closing of other partners.
  memberMsMax: 1_000,
  workMsMax: 10_000,
}

// A chunk holds the locks of this many members for less than a tenth of a second. A withdrawal of one of them waits that long, and
// each commit waits for the part of PostgreSQL's log that the chunk wrote.
const membersMax = 1_000

type OfPartner = { partnerId: string; now: Date }

/**
 * Ends a partner's open cycle once its last day is over, and opens the next one in the same transaction. Scheduled pay runs move
 * to the next cycle. This fixes the boundary: no pay is added to the ended cycle afterwards, and none of it can be withdrawn.
 * Each member's unused pay is released by `releaseSome`, or by the first movement that concerns the member (`ledger.post`). Until
 * then, a balance counts it as zero.
 *
 * No operation that moves pay can be half done: pay runs and refunds hold a share lock on the cycle, for which this waits. A
 * withdrawal that is being completed holds its member's lock, and releasing that member's pay waits for it. Such a withdrawal
 * either counts in the ended cycle or finds it closed. Idempotent: a cycle ends only while it is open and over, under its row
 * lock. It waits until the cycle before it is released, so that unused pay is always of one ended cycle.
 * @returns the ended and the newly opened cycle; undefined if the open cycle is not over or has to wait
 */
export async function endIfOver(
  tx: Tx,
  { partnerId, now }: OfPartner,
): Promise<{ closed: payCycles.PayCycle; opened: payCycles.PayCycle } | undefined> {
  await setWaitLimits(tx, limitsFor(limits.lockMsMax))
  const cycle = await payCycles.lockOpen(tx, partnerId)
  const { timeZone, schedule } = await payCycles.readTerms(tx, partnerId)
  if (cycle === undefined || !payCycles.isOver(cycle, { timeZone, now })) return undefined
  if ((await payCycles.findReleasing(tx, partnerId)) !== undefined) return undefined
  const closed = await payCycles.markClosed(tx, { partnerId, cycle, now })
  const opened = await payCycles.open(tx, { partnerId, timeZone, span: cycleAfter(schedule, cycle), now })
  await payRuns.moveScheduled(tx, { partnerId, from: closed.id, to: opened.id })
  return { closed, opened }
}

/**
 * How far the members of an ended cycle have been gone through. The first pass skips members that are locked. The next one waits for
 * those that are left, one at a time, so that no member is locked while another is waited for.
 */
export type Progress = { after: string; waits: boolean }
export const start: Progress = { after: '', waits: false }

type ReleaseStep = OfPartner & { progress: Progress; countMax?: number; isPatient?: boolean }

/**
 * Releases the unused pay of some members of the cycle that has ended: it returns to the cycle's earned pay. After the last
 * member, the earned pay equals the final deductions, and the cycle's closing is announced. Idempotent: pay is released under
 * its member's lock, and the progress only saves reading the members before it again.
 * @param options.isPatient whether it waits long for a member that is locked
 * @returns where to continue; `closed` after the last member; undefined if no cycle is being released
 */
export async function releaseSome(
  tx: Tx,
  { partnerId, progress, now, countMax = progress.waits ? 1 : membersMax, isPatient = false }: ReleaseStep,
): Promise<Progress | 'closed' | undefined> {
  await setWaitLimits(tx, limitsFor(isPatient ? limits.lockMsMax : limits.memberMsMax))
  const cycle = await payCycles.lockReleasing(tx, partnerId)
  if (cycle === undefined) return undefined
  const of = { partnerId, payCycleId: cycle.id }
  const memberIds = await listWithUnusedPay(tx, { ...of, after: progress.after, countMax })
  const locked = await lockMembers(tx, { partnerId, memberIds, waits: progress.waits })
  // Must follow the locks, so that it sees the withdrawals that they waited for.
  const unused = await readUnusedPay(tx, { ...of, memberIds: locked.map(({ id }) => id) })
  await ledger.release(tx, { partnerId, unused, now })
  const last = memberIds.length < countMax ? undefined : memberIds.at(-1)
  if (last !== undefined) return { ...progress, after: last }
  // Nothing adds pay to an ended cycle, so once no member has unused pay, none will.
  if ((await listWithUnusedPay(tx, { ...of, after: '', countMax: 1 })).length > 0) return { after: '', waits: true }
  await payCycles.markReleased(tx, { partnerId, cycle, now })
  return 'closed'
}

/** Ends a cycle as `endIfOver` does, and releases the unused pay of all its members, in one transaction: for few members. */
export async function closeIfOver(tx: Tx, of: OfPartner): ReturnType<typeof endIfOver> {
  const turn = await endIfOver(tx, of)
  for (let progress: Awaited<ReturnType<typeof releaseSome>> = start; typeof progress === 'object'; ) {
    const pass = { progress: { ...progress, waits: true }, countMax: membersMax, isPatient: true }
    progress = await releaseSome(tx, { ...of, ...pass })
  }
  return turn
}

/** The statement timeout covers the wait and the work. Overlapping holders of a cycle's share lock can outlast the usual ones. */
const limitsFor = (lockMsMax: number) => ({ lockMsMax, statementMsMax: lockMsMax + limits.workMsMax })

type OfCycle = payCycles.OfCycle

/** The members with unused pay of a cycle, in id order. @param after an id: only later ones */
async function listWithUnusedPay(
  tx: Tx,
  { partnerId, payCycleId, after, countMax }: OfCycle & { after: string; countMax: number },
): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select distinct member_id as id from ledger_balances
     where partner_id = ${partnerId} and member_id > ${after} and available > 0 and pay_cycle_id = ${payCycleId}
     order by member_id limit ${countMax}`.execute(tx)
  return rows.map(row => row.id)
}

async function readUnusedPay(
  tx: Tx,
  { partnerId, payCycleId, memberIds }: OfCycle & { memberIds: string[] },
): Promise<ledger.UnusedPay[]> {
  const { rows } = await sql<ledger.UnusedPay>`
    select member_id, currency, pay_cycle_id, available as amount from ledger_balances
     where partner_id = ${partnerId} and member_id = any(${memberIds}) and available > 0 and pay_cycle_id = ${payCycleId}
     order by member_id, currency`.execute(tx)
  return rows
}
