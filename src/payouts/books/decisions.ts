import { sql, type Tx } from '../../database/database.ts'
import { conflict, problem } from '../../kernel/errors.ts'
import { inWords } from '../../kernel/money.ts'
import { attach, attachToAll } from './attachments.ts'
import { endUnanswered, listWrittenOff, sumUnpaid } from './bank-records.ts'
import { type SealedText, sealedText, withBankTexts } from './bank-texts.ts'
import { matchDebits } from './batch-debits.ts'
import * as batches from './batches.ts'
import { byOneReference } from './by-reference.ts'
import { bearCharge, type Charge, requireCharge } from './charges.ts'
import { type DecidedPayment, end, lockPayout, lockPayouts, refuseIfPayable } from './decided-payments.ts'
import type * as exceptions from './exceptions.ts'
import { bookMovement, bookSettlement } from './float-movements.ts'
import { refuseIfOurs } from './ignored.ts'
import { isDebited, refuseIfNamed } from './named-payments.ts'
import { lockRail } from './rail-lock.ts'
import { restrictionOf } from './reasons.ts'
import { recover } from './recoveries.ts'
import { debitOf, writeOff } from './write-offs.ts'

// Operators' decisions about bank answers that did not fit.

export type Decision =
  /** Nothing follows from the answer. */
  | { decision: 'ignore' }
  /**
   * The answer is about this payment: money that arrived returns it, and money that left pays it. `charge` is the part that the bank kept
   * from a return, or took beside a debit.
   */
  | { decision: 'attach'; reference: string; charge?: Charge | undefined }
  /** Money that the bank describes only in words belongs to these payments, which add up to it. */
  | { decision: 'attach'; references: readonly string[] }
  /**
   * The payment, or every unanswered payment of the batch, was not made: the members get the money back. If the bank debited too little for
   * the batch, `references` names the payments that it did not make. `charge` is the part that it kept from a return.
   */
  | { decision: 'give_back'; references?: readonly string[] | undefined; charge?: Charge | undefined }
  /** The bank made the payment, or the payments of the batch, after all: the members repay. `references` as for `give_back`. */
  | { decision: 'recover'; references?: readonly string[] | undefined }
  /** The operator bears money that left. `references` as for `recover`; `partnerId` if the money is not about a payment. */
  | { decision: 'write_off'; references?: readonly string[] | undefined; partnerId?: string | undefined }
  /**
   * The money is a movement of the partner's float: the settlement of a pay cycle, or other money under a reference. The return of a
   * payment that was written off covers what the operator bore.
   */
  | { decision: 'book'; partnerId: string; reference?: string | undefined; payCycleId?: string | undefined }

type Exception = exceptions.Decided

type ClosingDecision = { exceptionId: string; person: string; note: string; now: Date } & Decision

/**
 * Closes an exception by a decision. Where the decision takes two people, the caller has asked both. Money is booked immediately;
 * withdrawals follow with the next reports of the rail.
 * @returns the exception; its partner is the one whose float was booked, if one was
 */
export async function closeException(
  tx: Tx,
  { exceptionId, person, note, now, ...decided }: ClosingDecision,
): Promise<Exception> {
  const exception = await lockException(tx, exceptionId)
  if (exception.closedAt !== null) throw conflict('The exception is closed already')
  if (decided.decision === 'ignore') await refuseIfOurs(tx, exception)
  if (decided.decision === 'attach') {
    if ('references' in decided) await attachToAll(tx, { exception, ...decided, now })
    else await attach(tx, { exception, ...decided, now })
  }
  if (decided.decision === 'give_back') await giveBack(tx, { exception, ...decided, now })
  if (decided.decision === 'recover') await recover(tx, { exception, references: decided.references, now })
  if (decided.decision === 'write_off') {
    const { references, partnerId } = decided
    await writeOff(tx, { exception, references, partnerId, now })
  }
  if (decided.decision === 'book') await book(tx, { exception, ...decided, now })
  await sql`
    update payout_exceptions set closed_at = ${now}, closed_by = ${person}, decision = ${decided.decision}, note = ${note}
     where id = ${exceptionId}`.execute(tx)
  return decided.decision === 'book' ? { ...exception, partnerId: decided.partnerId } : exception
}

/** Locks the rail before its exception, in the order of importers, which also close exceptions. */
export async function lockException(tx: Tx, exceptionId: string): Promise<Exception> {
  const unlocked = await tx
    .selectFrom('payoutExceptions')
    .select('rail')
    .where('id', '=', exceptionId)
    .executeTakeFirst()
  if (unlocked !== undefined) await lockRail(tx, { rail: unlocked.rail, for: 'records' })
  const { rows } = await sql<Omit<Exception, 'bankText'> & SealedText>`
    select e.id, e.rail, e.kind, e.reference, e.partner_id, e.withdrawal_id, e.outcome, e.amount, e.currency, e.booked_on, e.reason_code,
           e.opened_at, ${sealedText}, e.closed_at
      from payout_exceptions e where e.id = ${exceptionId} for update`.execute(tx)
  const [exception] = await withBankTexts(tx, rows)
  if (exception === undefined) throw problem('NotFound', `There is no exception ${exceptionId}`)
  return exception
}

type BookedMoney = {
  exception: Exception
  partnerId: string
  reference?: string | undefined
  payCycleId?: string | undefined
  now: Date
}

async function book(tx: Tx, { exception, partnerId, reference, payCycleId, now }: BookedMoney): Promise<void> {
  const { id, rail, kind, reference: ofEntry, amount, currency, bookedOn, bankText } = exception
  const isLate = await isLateReturn(tx, exception)
  // Money that came back for a payment, which no decision about the payment explains.
  const isCredit = bookedOn !== null && debitOf(exception) === null && (kind === 'amount' || kind === 'contradiction')
  if ((kind !== 'money_in' && kind !== 'money_out' && !isCredit) || amount === null || currency === null)
    throw conflict('Only money that arrived or left without a payment can be booked')
  if (isCredit && partnerId !== exception.partnerId)
    throw conflict(`The money belongs to the payment's partner, ${exception.partnerId}`)
  await refuseIfNamed(tx, exception, 'book')
  const isBorne = isLate && (await listWrittenOff(tx, { rail, references: [ofEntry ?? ''] })).length > 0
  const booking = {
    id,
    rail,
    reference: ofEntry,
    amount: { amount, currency },
    partnerId,
    isCover: isBorne && reference === undefined,
    now,
  }
  if (payCycleId === undefined) await bookMovement(tx, booking, reference)
  else await bookSettlement(tx, { ...booking, payCycleId, texts: [ofEntry, bankText].filter(text => text !== null) })
}

/** Whether the money of a payment came back after the member had it back: the operator bears the debit, or it was ignored. */
async function isLateReturn(tx: Tx, { rail, kind, outcome, bookedOn, reference }: Exception): Promise<boolean> {
  if (kind !== 'contradiction' || outcome !== 'returned' || bookedOn === null || reference === null) return false
  const payout = await lockPayout(tx, reference)
  return payout.rail === rail && payout.outcome === 'failed'
}

type GiveBack = {
  exception: Exception
  references?: readonly string[] | undefined
  charge?: Charge | undefined
  now: Date
}

async function giveBack(tx: Tx, { exception, references = [], charge, now }: GiveBack): Promise<void> {
  const { reference, amount, reasonCode, id, rail, kind, bookedOn } = exception
  if (kind === 'money_in' || kind === 'money_out')
    throw conflict('Money that arrived or left is closed with book or ignore: no payment failed')
  if (reference === null) throw conflict('The exception names neither a payment nor a batch')
  const isNamed = await byOneReference(tx, reference)
  const { rows } = await sql<{ batchId: string | null }>`
    select null as batch_id from payouts where rail = ${rail} and ${isNamed()}
    union all
    select id from payout_batches where rail = ${rail} and message_id = ${reference}`.execute(tx)
  const [found] = rows
  if (found === undefined || (found.batchId !== null && !(await batches.hasUnanswered(tx, found.batchId))))
    throw conflict(`${reference} is neither a payment nor a batch with unanswered payments`)
  if (found.batchId !== null && amount !== null) {
    if (references.length > 0) return await giveBackSome(tx, { exception, batchId: found.batchId, references, now })
    throw conflict(
      `The bank has debited the batch ${reference}, so it made at least some of the payments; import its report of the failed payments, or name them`,
    )
  }
  if (references.length > 0)
    throw conflict('Payments are named only if the bank has debited their batch with another sum')
  if (found.batchId !== null) return await giveBackBatch(tx, { batchId: found.batchId, rail, key: id, reasonCode, now })
  const payout = await lockPayout(tx, reference)
  if (bookedOn !== null && kind === 'amount' && exception.outcome === 'paid')
    throw conflict(`The bank has debited ${reference}, so its money cannot be given back; ask the bank`)
  // ARUCS advises returns without a day.
  const isMoneyBack = bookedOn !== null || exception.outcome === 'returned'
  if (isMoneyBack && kind === 'amount') requireCharge({ payout, outcome: 'returned', amount, charge })
  // A booked return shows that the payment was made, even if no answer has said so.
  const isReturn = bookedOn !== null && exception.outcome === 'returned'
  const unanswered = isReturn ? 'returned' : 'failed'
  const outcome = payout.outcome === null ? unanswered : payout.outcome === 'paid' ? 'returned' : null
  if (outcome === null) throw conflict(`The payment ${reference} is already ${payout.outcome}`)
  if (outcome === 'failed') refuseIfPayable(payout, exception.outcome)
  else await refuseIfPaidSince(tx, { payout, exception })
  // The reason that blocks a payment is not about the member.
  const restriction = kind === 'blocked' ? null : restrictionOf(reasonCode)
  const { partnerId } = payout
  if (charge !== undefined && isMoneyBack) await bearCharge(tx, { rail, exceptionId: id, partnerId, charge, now })
  const booked =
    bookedOn === null || outcome === 'failed' ? undefined : { day: bookedOn, amount: payout.netAmount, exceptionId: id }
  await end(tx, { payout, key: `${id} ${reference}`, outcome, reasonCode, restriction, booked, now })
}

type SomeToGiveBack = { exception: Exception; batchId: string; references: readonly string[]; now: Date }

/**
 * Gives back the payments of a batch that the bank did not make, after it debited less than the batch adds up to. They must explain the
 * difference exactly; the other unanswered payments are then paid, as if the bank had reported which payments failed.
 */
async function giveBackSome(
  tx: Tx,
  { exception: { id, rail, kind, amount }, batchId, references, now }: SomeToGiveBack,
): Promise<void> {
  const { messageId, controlTotal, currency } = await batches.lock(tx, batchId)
  const inMoney = (units: bigint) => inWords({ amount: units, currency })
  const missing = controlTotal - (await sumUnpaid(tx, batchId)) + (amount ?? 0n)
  if (kind !== 'amount' || missing <= 0n)
    throw conflict(`The bank did not debit less than the payments of ${messageId} add up to`)
  const payouts = await lockPayouts(tx, references)
  const other = payouts.find(payout => payout.batchId !== batchId || payout.outcome !== null)
  if (other !== undefined) throw conflict(`${other.reference} is not an unanswered payment of the batch ${messageId}`)
  const named = payouts.reduce((sum, payout) => sum + payout.netAmount, 0n)
  if (named !== missing)
    throw conflict(
      `The payments add up to ${inMoney(named)}, but the bank debited ${inMoney(missing)} less than the batch`,
    )
  // The debit gives no reason, which counts as a refusal without a code.
  const ended = { outcome: 'failed', reasonCode: null, restriction: restrictionOf(null), now } as const
  for (const payout of payouts) await end(tx, { payout, key: `${id} ${payout.reference}`, ...ended })
  await matchDebits(tx, { rail, now })
  const { rows: closed } = await sql`
    select from payout_exceptions where id = ${id} and closed_at is not null`.execute(tx)
  if (closed.length === 0) throw conflict(`An earlier debit of ${messageId} has the same amount; decide that one first`)
  await batches.settleAnswered(tx, { rail, now })
}

type BatchToGiveBack = { batchId: string; rail: string; key: string; reasonCode: string | null; now: Date }

/** Gives back every unanswered payment of a batch in one statement. The reason of a batch is not about the members. */
async function giveBackBatch(tx: Tx, { batchId, rail, key, reasonCode, now }: BatchToGiveBack): Promise<void> {
  const { sentAt, messageId } = await batches.lock(tx, batchId)
  if (sentAt === null) throw conflict(`The batch ${messageId} has not been sent; take its payments out of it instead`)
  const source = { rail, messageId: 'operator', keyPrefix: key }
  await endUnanswered(tx, { source, batchId, outcome: 'failed', reasonCode, now })
  await batches.recordGivenBack(tx, { batchId, now })
  await batches.settleAnswered(tx, { rail, now })
}

/**
 * Refuses to give back a payment that the exception says was paid, or that was paid after the exception had been opened. Money that the
 * bank has debited comes back only with a credit.
 */
async function refuseIfPaidSince(
  tx: Tx,
  { payout, exception }: { payout: DecidedPayment; exception: Exception },
): Promise<void> {
  const { reference, rail } = payout
  const { kind, outcome, openedAt } = exception
  if (outcome === 'returned') return
  // Scans from the end of the index, which is near: an exception is about a payment of the last days or weeks.
  const { rows } = await sql<{ isPaidSince: boolean }>`
    select created_at > ${openedAt} as is_paid_since from bank_records
     where rail = ${rail} and reference = ${reference} and outcome is not null
     order by sequence desc limit 1`.execute(tx)
  const isAboutUnpaid = kind === 'blocked' || kind === 'float' || kind === 'duplicate'
  if (outcome === 'paid' || isAboutUnpaid || rows[0]?.isPaidSince || (await isDebited(tx, reference)))
    throw conflict(`The bank has paid ${reference}, so its money cannot be given back; close the exception with ignore`)
}
