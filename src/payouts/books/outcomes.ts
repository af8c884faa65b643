import { type Reader, sql, type Tx } from '../../database/database.ts'
import { conflict } from '../../kernel/errors.ts'
import type { Money } from '../../kernel/money.ts'
import type { Day } from '../../kernel/time.ts'
import type { FinalOutcome } from '../../withdrawals/lifecycle.ts'
import { type SealedText, sealedText, withBankTexts } from './bank-texts.ts'
import * as batches from './batches.ts'
import { bearCharge, type Charge, requireCharge } from './charges.ts'
import { byHandPrefix, type DecidedPayment, end, findPayout, lockPayout, refuseIfPayable } from './decided-payments.ts'
import { lockRail } from './rail-lock.ts'
import { takeForSent } from './restores.ts'

/** The outcome of a payment as the operator knows it: from the bank's portal, or on the phone. */
export type OutcomeByHand =
  | { outcome: 'paid' | 'failed' }
  /** `credit`: the entry by which the money arrived; a charge makes up what it lacks. */
  | { outcome: 'returned'; credit: { bookedOn: Day; amount: Money }; borneBy?: Charge['borneBy'] | undefined }

/**
 * Ends a sent payment that no file answers. A file that says the same later changes nothing, and another is an exception.
 * @param payment its reference, or the withdrawal's id
 * @throws Problem `Conflict` if the payment was not sent or has ended, if the bank may have paid it or may still pay it (`failed`),
 * or if the credit is of another amount or has an open exception
 */
export async function decideOutcome(
  tx: Tx,
  { payment, now, ...decided }: { payment: string; now: Date } & OutcomeByHand,
): Promise<{ partnerId: string; withdrawalId: string; reference: string }> {
  const { rail, batchId } = await findPayout(tx, payment)
  // Locks in the order of the importer: the rail, the batch, the payment.
  await lockRail(tx, { rail, for: 'records' })
  const batch = batchId === null ? null : await batches.lock(tx, batchId)
  const { outcome } = decided
  if (outcome === 'paid') await takeForSent(tx, { rail, payments: [payment], now })
  const payout = await lockPayout(tx, payment)
  const isPossible = payout.outcome === null || (payout.outcome === 'paid' && outcome === 'returned')
  if (!isPossible) throw conflict(`The payment ${payout.reference} is already ${payout.outcome}`)
  if (outcome === 'failed') {
    refuseIfPayable(payout, null)
    await refuseIfDebited(tx, { payout, batch })
    await refuseIfExpected(tx, { payout, batch, now })
  }
  if (outcome === 'returned') await refuseIfCredited(tx, { payout, amount: decided.credit.amount })
  const booked = outcome === 'returned' ? await bookCredit(tx, { payout, batch, ...decided, now }) : undefined
  const key = `${byHandPrefix}${payout.reference} ${outcome} ${now.toISOString()}`
  await end(tx, { payout, key, outcome, reasonCode: null, restriction: null, booked, now })
  const { partnerId, withdrawalId, reference } = payout
  return { partnerId, withdrawalId, reference }
}

type CreditByHand = {
  payout: DecidedPayment
  batch: batches.Batch | null
  credit: { bookedOn: Day; amount: Money }
  borneBy?: Charge['borneBy'] | undefined
  now: Date
}

async function bookCredit(
  tx: Tx,
  { payout, batch, credit: { bookedOn, amount }, borneBy = 'operator', now }: CreditByHand,
): Promise<{ day: Day; amount: bigint }> {
  const { rail, partnerId, currency } = payout
  if (amount.currency !== currency) throw conflict(`The payment is in ${currency}`)
  if (batch !== null && bookedOn < batch.valueDate)
    throw conflict(`The payment was made on ${batch.valueDate}, so it cannot have come back on ${bookedOn}`)
  const missing = { amount: payout.netAmount - amount.amount, currency }
  const charge = missing.amount > 0n ? { amount: missing, borneBy: borneBy } : undefined
  requireCharge({ payout, outcome: 'returned', amount: amount.amount, charge })
  if (charge !== undefined) await bearCharge(tx, { rail, exceptionId: null, partnerId, charge, now })
  // As the bank books it, so that its file says the same.
  return { day: bookedOn, amount: amount.amount }
}

type Sent = { payout: DecidedPayment; batch: batches.Batch | null }

/** Refuses if money that left and waits for a decision may be the payment. */
async function refuseIfDebited(
  db: Reader,
  { payout: { rail, reference, netAmount: amount }, batch }: Sent,
): Promise<void> {
  const { rows } = await sql<{ id: string }>`
    select id from payout_exceptions
     where rail = ${rail} and closed_at is null and amount < 0
       and (reference = ${reference} or reference = ${batch?.messageId ?? ''}
            or -amount in (${amount}, ${batch?.controlTotal ?? amount}))
     order by id limit 1`.execute(db)
  const [found] = rows
  if (found !== undefined)
    throw conflict(`The debit of the exception ${found.id} may be the payment ${reference}; decide that one first`)
}

/** Refuses if the credit is in a file already, and waits for a decision. A statement may book it on another day than the portal says. */
async function refuseIfCredited(
  db: Reader,
  { payout: { rail, reference }, amount }: { payout: DecidedPayment; amount: Money },
): Promise<void> {
  const { rows } = await sql<{ id: string; reference: string | null } & SealedText>`
    select e.id, e.reference, e.rail, ${sealedText} from payout_exceptions e
     where e.rail = ${rail} and e.closed_at is null and e.amount = ${amount.amount}
       and (e.booked_on is not null or e.outcome = 'returned')
     order by e.id`.execute(db)
  const names = (text: string | null) => text?.toUpperCase().includes(reference)
  const opened = await withBankTexts(db, rows)
  const found = opened.find(each => each.reference === reference || names(each.bankText))
  if (found !== undefined)
    throw conflict(`The exception ${found.id} is about the credit of ${reference}; decide that one`)
}

/** Refuses while the bank may still pay: before the day on which the payee should have the money is over, and after it accepted. */
async function refuseIfExpected(
  db: Reader,
  { payout: { rail, reference, expectedAt }, batch, now }: Sent & { now: Date },
): Promise<void> {
  if (expectedAt !== null && expectedAt >= now)
    throw conflict(`The bank may still pay ${reference}, until ${expectedAt.toISOString()}; decide after that`)
  if (batch === null || batch.acknowledgedAt === null) return
  const { rows } = await sql`
    select from bank_statements
     where rail = ${rail} and closing is not null and day > ${batch.valueDate}::date limit 1`.execute(db)
  if (rows.length === 0)
    throw conflict(
      `The bank has accepted ${reference} and may still pay it; import its statement of a day after ${batch.valueDate} first`,
    )
}

export const outcomesByHand = ['paid', 'failed', 'returned'] as const satisfies FinalOutcome[]
