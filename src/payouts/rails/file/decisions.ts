import { type Reader, sql, type Tx } from '../../../database/database.ts'
import { problem } from '../../../errors.ts'
import { isIdOf } from '../../../ids.ts'
import type { Restriction } from '../../../members/restrictions.ts'
import { inWords } from '../../../money.ts'
import type { FinalOutcome } from '../../../withdrawals/lifecycle.ts'
import type * as exceptions from '../../exceptions.ts'
import { reasonInWords, restrictionOf } from '../reasons.ts'
import { recordOutcome } from '../reports.ts'
import { endUnanswered } from './bank-records.ts'
import { matchDebits } from './batch-debits.ts'
import * as batches from './batches.ts'
import { bookMovement, bookSettlement } from './float-movements.ts'
import { lockRail } from './rail-lock.ts'

// What operators decide about batches, payments and exceptions.

/** People who must approve a batch above the limits for automatic approval. */
export const approvalsNeeded = 2

type OnBatch = { batchId: string; now: Date }

/**
 * Approves a closed batch for a person. With the second person it may be sent. Idempotent for the same person. All approvals of a
 * batch come from users of the console, or all from logins: nothing tells whether a user and a login are the same person.
 * @param login of the operating system, from which a second person may approve only if `mayShareLogin`; null for a user of the console
 * @returns how many people have approved it, and whether the person had not before
 */
export async function approve(
  tx: Tx,
  {
    batchId,
    person,
    login = null,
    mayShareLogin = false,
    now,
  }: OnBatch & { person: string; login?: string | null; mayShareLogin?: boolean },
): Promise<{ approvalCount: number; hasChanged: boolean }> {
  const batch = await lock(tx, batchId)
  if (batch.status !== 'building') throw problem('Conflict', `The batch is ${batch.status}; it needs no approval`)
  if (batch.closedAt === null) {
    throw problem('Conflict', `The batch takes payments until ${batch.cutOffAt.toISOString()}; approve it after that`)
  }
  const earlier = await listCounting(tx, batchId)
  if (earlier.some(approval => (approval.login === null) !== (login === null))) {
    throw problem(
      'Conflict',
      login === null
        ? 'The batch has an approval by command, so another person must approve it by command, too'
        : 'The batch has an approval in the console, so another person must approve it in the console, too',
    )
  }
  const hasChanged = !earlier.some(approval => sameName(approval.person) === sameName(person))
  if (hasChanged) {
    if (login !== null && !mayShareLogin && earlier.some(approval => approval.login === login)) {
      throw new Error(
        `Another person must approve the batch from another login: ${login} has approved it. OPENWAGE_APPROVAL_LOGINS=any allows this`,
      )
    }
    await sql`
      insert into payout_batch_approvals (batch_id, person, login, at)
      values (${batchId}, ${person}, ${login}, ${now})`.execute(tx)
  }
  const people = await listCounting(tx, batchId)
  if (people.length >= approvalsNeeded) {
    await sql`
      update payout_batches set status = 'approved', approved_at = ${now} where id = ${batchId}`.execute(tx)
  }
  return { approvalCount: people.length, hasChanged }
}

/**
 * Equal for spellings of one name that look alike: letter case, full width, invisible characters, blanks. A name that was given
 * is followed by the login in brackets, which makes no other person of it.
 */
function sameName(person: string): string {
  return person
    .replace(/ \([^()]*\)$/, '')
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .replace(/\s+/gu, ' ')
    .trim()
    .toLowerCase()
}

type Approval = { person: string; login: string | null; at: Date }

/** Who approved a batch, and when, oldest first. */
export async function listApprovals(db: Reader, batchId: string): Promise<Approval[]> {
  return await db
    .selectFrom('payoutBatchApprovals')
    .select(['person', 'login', 'at'])
    .where('batchId', '=', batchId)
    .orderBy('at')
    .orderBy('person')
    .execute()
}

/** Approvals by people. Earlier versions took those of operator keys, too, of which one person can have two. */
async function listCounting(tx: Tx, batchId: string): Promise<Approval[]> {
  return (await listApprovals(tx, batchId)).filter(({ person }) => !isIdOf('operatorKey', person))
}

/** Holds an unsent batch, or releases it. Idempotent. @returns whether that changed anything */
export async function setHeld(tx: Tx, { batchId, held }: { batchId: string; held: boolean }): Promise<boolean> {
  const batch = await lock(tx, batchId)
  refuseSent(batch)
  if (batch.held === held) return false
  await sql`
    update payout_batches set held = ${held} where id = ${batchId}`.execute(tx)
  return true
}

/**
 * Takes a payment out of an unsent batch. It counts as failed, so the member has the money back.
 * @param payment its reference, or the withdrawal's id
 * @param reason what the partner and the member read
 */
export async function remove(
  tx: Tx,
  { payment, reason, now }: { payment: string; reason: string; now: Date },
): Promise<{ partnerId: string; withdrawalId: string; batchId: string }> {
  const { rail, batchId } = await findPayout(tx, payment)
  // In the order of the importer and of the sender: the rail, the batch, the payment.
  await lockRail(tx, { rail, for: 'records' })
  const batch = batchId === null ? undefined : await lock(tx, batchId)
  const { reference, partnerId, withdrawalId, amount, outcome } = await lockPayout(tx, payment)
  if (batch === undefined || batchId === null || outcome !== null)
    throw problem('Conflict', `${reference} waits in no batch`)
  refuseSent(batch)
  await sql`
    update payouts set removed_at = ${now}, outcome = 'failed' where reference = ${reference}`.execute(tx)
  await sql`
    update payout_batches set payment_count = payment_count - 1, control_total = control_total - ${amount}
     where id = ${batchId}`.execute(tx)
  const ended = { rail, reference, messageId: 'operator', entryKey: `removed ${reference}`, now }
  await recordOutcome(tx, { ...ended, outcome: 'failed', reason })
  return { partnerId, withdrawalId, batchId }
}

async function lock(tx: Tx, batchId: string): Promise<batches.Batch> {
  await sql`select from payout_batches where id = ${batchId} for update`.execute(tx)
  return await batches.require(tx, batchId)
}

function refuseSent({ status, sendingAt }: batches.Batch): void {
  if (status !== 'building' && status !== 'approved')
    throw problem('Conflict', `The batch is ${status}, so it cannot be changed`)
  if (sendingAt !== null)
    throw problem('Conflict', 'The file of the batch is being delivered, so the batch cannot be changed')
}

type Payout = {
  reference: string
  rail: string
  partnerId: string
  withdrawalId: string
  batchId: string | null
  amount: bigint
  currency: string
  outcome: FinalOutcome | null
  /** It was sent to the bank by a request, not in a file. */
  isSentAlone: boolean
  /** When the latest request was sent that may have made it. */
  requestOpenAt: Date | null
  /** The bank's id, if it has accepted a request. */
  transferId: string | null
}

async function lockPayout(tx: Tx, payment: string): Promise<Payout> {
  return await findPayout(tx, payment, { lock: true })
}

async function findPayout(tx: Tx, payment: string, { lock: locks = false } = {}): Promise<Payout> {
  const { rows } = await sql<Payout>`
    select reference, rail, partner_id, withdrawal_id, batch_id, amount, currency, outcome,
           sent_at is not null as is_sent_alone, request_open_at, transfer_id
      from payouts where reference = ${payment} or withdrawal_id = ${payment} ${locks ? sql`for update` : sql``}`.execute(
    tx,
  )
  const [payout] = rows
  if (payout === undefined) throw problem('NotFound', `There is no payment ${payment}`)
  return payout
}

export type Decision =
  /** Nothing follows from the answer. */
  | { decision: 'ignore' }
  /** The answer is about this payment. */
  | { decision: 'attach'; reference: string }
  /**
   * The payment, or every unanswered payment of the batch, was not made: the members have the money back. If the bank has debited
   * the batch with too little, `references` names the payments that it did not make.
   */
  | { decision: 'give_back'; references?: readonly string[] | undefined }
  /** The money is a movement of the partner's float: the settlement of a pay cycle, or other money under a reference. */
  | { decision: 'book'; partnerId: string; reference?: string | undefined; payCycleId?: string | undefined }

type Exception = Pick<
  exceptions.Exception,
  | 'id'
  | 'rail'
  | 'kind'
  | 'reference'
  | 'partnerId'
  | 'withdrawalId'
  | 'outcome'
  | 'amount'
  | 'currency'
  | 'reasonCode'
  | 'openedAt'
  | 'closedAt'
>

/**
 * Closes an exception by a decision. Money is booked at once; withdrawals follow with the next reports of the rail.
 * @returns the exception, and the partner whose float was booked
 */
export async function closeException(
  tx: Tx,
  {
    exceptionId,
    person,
    note,
    now,
    ...decided
  }: { exceptionId: string; person: string; note: string; now: Date } & Decision,
): Promise<Exception> {
  const exception = await lockException(tx, exceptionId)
  if (exception.closedAt !== null) throw problem('Conflict', 'The exception is closed already')
  if (decided.decision === 'attach') await attach(tx, { exception, reference: decided.reference, now })
  if (decided.decision === 'give_back') await giveBack(tx, { exception, references: decided.references, now })
  if (decided.decision === 'book') await book(tx, { exception, ...decided, now })
  await sql`
    update payout_exceptions set closed_at = ${now}, closed_by = ${person}, decision = ${decided.decision}, note = ${note}
     where id = ${exceptionId}`.execute(tx)
  return decided.decision === 'book' ? { ...exception, partnerId: decided.partnerId } : exception
}

/** Locks the rail before its exception, in the order of importers, which close exceptions too. */
async function lockException(tx: Tx, exceptionId: string): Promise<Exception> {
  const unlocked = await tx
    .selectFrom('payoutExceptions')
    .select('rail')
    .where('id', '=', exceptionId)
    .executeTakeFirst()
  if (unlocked !== undefined) await lockRail(tx, { rail: unlocked.rail, for: 'records' })
  const { rows } = await sql<Exception>`
    select id, rail, kind, reference, partner_id, withdrawal_id, outcome, amount, currency, reason_code, opened_at,
           closed_at
      from payout_exceptions where id = ${exceptionId} for update`.execute(tx)
  const [exception] = rows
  if (exception === undefined) throw problem('NotFound', `There is no exception ${exceptionId}`)
  return exception
}

async function book(
  tx: Tx,
  {
    exception: { id, rail, kind, reference: ofEntry, amount, currency },
    partnerId,
    reference,
    payCycleId,
    now,
  }: {
    exception: Exception
    partnerId: string
    reference?: string | undefined
    payCycleId?: string | undefined
    now: Date
  },
): Promise<void> {
  if ((kind !== 'money_in' && kind !== 'money_out') || amount === null || currency === null)
    throw problem('Conflict', 'Only money that arrived or left without a payment can be booked')
  const booking = { id, rail, reference: ofEntry, amount: { amount, currency }, partnerId, now }
  if (payCycleId === undefined) await bookMovement(tx, booking, reference)
  else await bookSettlement(tx, { ...booking, payCycleId })
}

async function attach(
  tx: Tx,
  { exception, reference, now }: { exception: Exception; reference: string; now: Date },
): Promise<void> {
  const { outcome, amount, rail, id, reasonCode } = exception
  if (outcome === null)
    throw problem('Conflict', 'The answer does not say that a payment was made, failed or was returned')
  const payout = await lockPayout(tx, reference)
  if (payout.rail !== rail || (payout.batchId === null && !payout.isSentAlone))
    throw problem('Conflict', `${reference} was not sent through ${rail}`)
  if (amount !== null && amount !== payout.amount)
    throw problem('Conflict', `The answer is about another amount than the payment ${reference}`)
  const isPossible = payout.outcome === null || (payout.outcome === 'paid' && outcome === 'returned')
  if (!isPossible) throw problem('Conflict', `The payment ${reference} is ${payout.outcome} already`)
  if (outcome === 'failed') refuseIfPayable(payout, exception)
  const restriction = outcome === 'paid' ? null : restrictionOf(reasonCode)
  await end(tx, { payout, key: id, outcome, reasonCode, restriction, now })
}

async function giveBack(
  tx: Tx,
  { exception, references = [], now }: { exception: Exception; references?: readonly string[] | undefined; now: Date },
): Promise<void> {
  const { reference, amount, reasonCode, id, rail, kind } = exception
  if (kind === 'money_in' || kind === 'money_out')
    throw problem('Conflict', 'Money that arrived or left is closed with book or ignore: no payment failed')
  if (reference === null) throw problem('Conflict', 'The exception names neither a payment nor a batch')
  const { rows } = await sql<{ batchId: string | null }>`
    select null as batch_id from payouts where rail = ${rail} and reference = ${reference}
    union all
    select id from payout_batches b
     where rail = ${rail} and message_id = ${reference}
       and exists (select from payouts p where p.batch_id = b.id and p.outcome is null)`.execute(tx)
  const [found] = rows
  if (found === undefined)
    throw problem('Conflict', `${reference} is neither a payment nor a batch with unanswered payments`)
  if (found.batchId !== null && amount !== null) {
    if (references.length > 0) return await giveBackSome(tx, { exception, batchId: found.batchId, references, now })
    throw problem(
      'Conflict',
      `The bank has debited the batch ${reference}, so it made at least some of the payments; import its report of those that failed, or name them`,
    )
  }
  if (references.length > 0)
    throw problem('Conflict', 'Payments are named only if the bank has debited their batch with another sum')
  if (found.batchId !== null) return await giveBackBatch(tx, { batchId: found.batchId, rail, key: id, reasonCode, now })
  const payout = await lockPayout(tx, reference)
  const outcome = payout.outcome === null ? 'failed' : payout.outcome === 'paid' ? 'returned' : null
  if (outcome === null) throw problem('Conflict', `The payment ${reference} is ${payout.outcome} already`)
  if (outcome === 'failed') refuseIfPayable(payout, exception)
  else await refuseIfPaidSince(tx, { payout, exception })
  // What blocks a payment is not about the member.
  const restriction = kind === 'blocked' ? null : restrictionOf(reasonCode)
  await end(tx, { payout, key: `${id} ${reference}`, outcome, reasonCode, restriction, now })
}

/**
 * Gives back the payments that the bank did not make of a batch, of which it debited less than they add up to. They must explain
 * the difference exactly; the other unanswered payments are then paid, as when the bank reports which failed.
 */
async function giveBackSome(
  tx: Tx,
  {
    exception: { id, rail, kind, amount },
    batchId,
    references,
    now,
  }: { exception: Exception; batchId: string; references: readonly string[]; now: Date },
): Promise<void> {
  const { messageId, controlTotal, currency } = await lock(tx, batchId)
  const inMoney = (units: bigint) => inWords({ amount: units, currency })
  const { rows } = await sql<{ failed: bigint }>`
    select coalesce(sum(amount), 0)::bigint as failed from payouts
     where batch_id = ${batchId} and outcome = 'failed' and removed_at is null`.execute(tx)
  const missing = controlTotal - (rows[0]?.failed ?? 0n) + (amount ?? 0n)
  if (kind !== 'amount' || missing <= 0n)
    throw problem('Conflict', `The bank did not debit less than the payments of ${messageId} add up to`)
  const payouts: Payout[] = []
  // In order, as all that lock several payments of a batch.
  for (const reference of [...new Set(references)].sort()) payouts.push(await lockPayout(tx, reference))
  const other = payouts.find(payout => payout.batchId !== batchId || payout.outcome !== null)
  if (other !== undefined)
    throw problem('Conflict', `${other.reference} is no unanswered payment of the batch ${messageId}`)
  const named = payouts.reduce((sum, payout) => sum + payout.amount, 0n)
  if (named !== missing)
    throw problem(
      'Conflict',
      `The payments add up to ${inMoney(named)}, but the bank debited ${inMoney(missing)} less than the batch`,
    )
  // The debit gives no reason, which is as a refusal without a code.
  const ended = { outcome: 'failed', reasonCode: null, restriction: restrictionOf(null), now } as const
  for (const payout of payouts) await end(tx, { payout, key: `${id} ${payout.reference}`, ...ended })
  await matchDebits(tx, { rail, now })
  const { rows: closed } = await sql`
    select from payout_exceptions where id = ${id} and closed_at is not null`.execute(tx)
  if (closed.length === 0)
    throw problem('Conflict', `An earlier debit of ${messageId} has the same amount; decide that one first`)
  await batches.settleAnswered(tx, { rail, now })
}

/** Gives every unanswered payment of a batch back, by one statement. The reason of a batch is not about the members. */
async function giveBackBatch(
  tx: Tx,
  {
    batchId,
    rail,
    key,
    reasonCode,
    now,
  }: { batchId: string; rail: string; key: string; reasonCode: string | null; now: Date },
): Promise<void> {
  const { sentAt, messageId } = await lock(tx, batchId)
  if (sentAt === null)
    throw problem('Conflict', `The batch ${messageId} has not been sent; take its payments out of it instead`)
  const source = { rail, messageId: 'operator', keyPrefix: key }
  await endUnanswered(tx, { source, batchId, outcome: 'failed', reasonCode, now })
  await batches.settleAnswered(tx, { rail, now })
}

/** Refuses to end a payment as failed that the bank may have made, or may still make. */
function refuseIfPayable({ reference, rail, requestOpenAt, transferId }: Payout, exception: Exception): void {
  if (requestOpenAt !== null) {
    throw problem(
      'Conflict',
      `The request for ${reference} of ${requestOpenAt.toISOString()} may have been accepted, so its money cannot be given back yet. The worker asks the bank at least once an hour; try again after that. It cannot ask unless ${rail} is in OPENWAGE_RAILS, so configure the rail again if it was taken out. If requests are repeated without an answer, hold the rail ${rail} first`,
    )
  }
  // Only an exception that says so shows that the transfer has ended without being paid.
  if (transferId !== null && exception.outcome !== 'failed' && exception.outcome !== 'returned') {
    throw problem(
      'Conflict',
      `The bank has accepted ${reference} and may still pay it, so its money cannot be given back. The worker asks for the outcome`,
    )
  }
}

/** Refuses to give back a payment that the exception says was paid, or that was paid after the exception had been opened. */
async function refuseIfPaidSince(
  tx: Tx,
  { payout: { reference, rail }, exception: { kind, outcome, openedAt } }: { payout: Payout; exception: Exception },
): Promise<void> {
  if (outcome === 'returned') return
  // From the end of the index, which is near: an exception is about a payment of the last days or weeks.
  const { rows } = await sql<{ isPaidSince: boolean }>`
    select created_at > ${openedAt} as is_paid_since from bank_records
     where rail = ${rail} and reference = ${reference} and outcome is not null
     order by sequence desc limit 1`.execute(tx)
  const isAboutUnpaid = kind === 'blocked' || kind === 'float' || kind === 'duplicate'
  if (outcome === 'paid' || isAboutUnpaid || rows[0]?.isPaidSince)
    throw problem(
      'Conflict',
      `The bank has paid ${reference}, so its money cannot be given back; close the exception with ignore`,
    )
}

async function end(
  tx: Tx,
  {
    payout,
    key,
    outcome,
    reasonCode,
    restriction,
    now,
  }: {
    payout: Payout
    key: string
    outcome: FinalOutcome
    reasonCode: string | null
    restriction: Restriction | null
    now: Date
  },
): Promise<void> {
  const { reference, rail, batchId, isSentAlone } = payout
  const batch = batchId === null ? undefined : await batches.require(tx, batchId)
  // An unsent batch would still pay it.
  if (!isSentAlone && (batch === undefined || batch.sentAt === null))
    throw problem('Conflict', `The payment ${reference} has not been sent; take it out of its batch instead`)
  const reason = reasonInWords(reasonCode)
  const ended = { rail, reference, messageId: 'operator', entryKey: key, now }
  await recordOutcome(tx, { ...ended, outcome, reasonCode, reason, restriction })
  await batches.settleAnswered(tx, { rail, now })
}
