import { setTimeout as pause } from 'node:timers/promises'
import { sql, type Tx } from '../database/database.ts'
import { brokenConstraint, isDeadlock, isLockTimeout } from '../database/errors.ts'
import { isSpread } from '../database/spread.ts'
import { setWaitLimits } from '../database/wait-limits.ts'
import * as events from '../events/events.ts'
import { problem } from '../kernel/errors.ts'
import * as members from '../members/members.ts'
import { resetOffset } from '../partners/clocks.ts'
import * as partners from '../partners/partners.ts'
import * as batches from '../payouts/books/batches.ts'
import * as payouts from '../payouts/payouts.ts'
import * as webhooks from '../webhooks/webhooks.ts'
import { stopMoving } from './moves.ts'

const limits = {
  // A request or a task of the partner holds its locks for seconds on a busy machine: an import, or a closing cycle.
  lockMsMax: 30_000,
  // A partner with ten thousand members takes half a minute, and several on a busy machine: each member's rows are searched for in every
  // table.
  statementMsMax: 300_000,
  // Before each attempt fails, PostgreSQL takes a second to find the deadlock.
  attemptsMax: 10,
  // Lets the other transaction finish; random, so that two resets do not collide again.
  pauseMsMax: 200,
}

/**
 * Deletes everything of the partner except its settings, tiers, keys, audit log and place in the event feed, and sets its clock to real
 * time. The caller opens a pay cycle.
 *
 * @throws Problem `Conflict` while a process is moving the clock, or if other work of the partner keeps getting in between
 *
 * A database function deletes, because the program may not delete from the books; see docs/decisions/0015-a-clock-per-partner.md.
 */
export async function resetPartner(tx: Tx, { partnerId }: { partnerId: string }): Promise<void> {
  await setWaitLimits(tx, limits)
  await stopMoving(tx, partnerId).catch(error => {
    // Another reset holds the clock.
    throw isLockTimeout(error) ? busy() : error
  })
  await sql`savepoint before_reset`.execute(tx)
  for (let attempt = 1; ; attempt++) {
    try {
      // First: attempts are recorded under the lock of their endpoint, and then update deliveries, which are deleted here.
      await webhooks.startAnew(tx, { partnerId })
      await lockAll(tx, partnerId)
      if (await isSpread(tx)) await resetOnNodes(tx, partnerId)
      await partners.resumePartner(tx, partnerId)
      await sql`select reset_sandbox_partner(${partnerId})`.execute(tx)
      await members.recount(tx, partnerId)
      break
    } catch (error) {
      // A row that refers to a deleted one can be committed in between: a member's first pay, for example.
      const isInTheWay = brokenConstraint(error) !== undefined || isDeadlock(error)
      if (isLockTimeout(error) || (isInTheWay && attempt === limits.attemptsMax)) throw busy()
      if (!isInTheWay) throw error
      // Also frees the locks of this attempt.
      await sql`rollback to savepoint before_reset`.execute(tx)
      await pause(Math.random() * limits.pauseMsMax)
    }
  }
  await resetOffset(tx, partnerId)
}

/**
 * Deletes what is not on the coordinator. Citus lets no function of the owner touch rows that the program has written in the same
 * transaction, but it lets a trigger on the partner's node.
 */
async function resetOnNodes(tx: Tx, partnerId: string): Promise<void> {
  await batches.subtractPartner(tx, partnerId)
  await events.resetPartner(tx, partnerId)
  await payouts.removeReferences(tx, partnerId)
}

function busy() {
  const message = 'Other requests or tasks of the partner are in the way; reset the sandbox when they have ended'
  return problem('Conflict', message, {}, { 'retry-after': '1' })
}

/**
 * Takes the locks of other operations in the order that `lockMembers` states, because the function deletes in another order. The partner's
 * row, which is resumed, comes last, as for a completed withdrawal.
 */
async function lockAll(tx: Tx, partnerId: string): Promise<void> {
  // Not `for update`: completing a withdrawal locks its member and then refers to the cycle.
  await sql`
    select from pay_cycles where partner_id = ${partnerId} and released_at is null order by id for no key update`.execute(
    tx,
  )
  await sql`select from members where partner_id = ${partnerId} order by id for update`.execute(tx)
  await sql`select from withdrawal_intents where partner_id = ${partnerId} order by id for update`.execute(tx)
  await sql`select from withdrawals where partner_id = ${partnerId} order by id for update`.execute(tx)
  await sql`select from pay_runs where partner_id = ${partnerId} order by id for update`.execute(tx)
}
