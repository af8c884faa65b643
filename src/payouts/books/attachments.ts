import { type Reader, sql, type Tx } from '../../database/database.ts'
import { conflict } from '../../kernel/errors.ts'
import { inWords } from '../../kernel/money.ts'
import type { FinalOutcome } from '../../withdrawals/lifecycle.ts'
import { endUnanswered, isUnpaid, paymentsOf } from './bank-records.ts'
import * as batches from './batches.ts'
import { bearCharge, type Charge, requireCharge } from './charges.ts'
import { byHandPrefix, type DecidedPayment, end, lockPayout, lockPayouts, refuseIfPayable } from './decided-payments.ts'
import type * as exceptions from './exceptions.ts'
import { lacksDebit, listNamed, type NamedPayment } from './named-payments.ts'
import { restrictionOf } from './reasons.ts'
import { findBatch } from './recoveries.ts'
import { addRecord } from './reports.ts'
import { findRestore, takeForSent } from './restores.ts'

type AttachedAnswer = { exception: exceptions.Decided; reference: string; charge?: Charge | undefined; now: Date }

/**
 * Attaches an answer to a payment. Money that the bank described only in words returns the payment if it arrived, and pays it if it left.
 * @throws Problem `Conflict` if the answer cannot be about the payment, or the amounts differ by more than the named charge
 */
export async function attach(tx: Tx, { exception, reference, charge, now }: AttachedAnswer): Promise<void> {
  const { rail, id, amount } = exception
  if (exception.kind === 'amount' && reference === exception.reference) {
    const batch = await findBatch(tx, { rail, messageId: reference })
    if (batch !== undefined) return await attachToBatch(tx, { exception, batchId: batch.id, charge, now })
  }
  const outcome = outcomeOf(exception)
  if (outcome === null) throw conflict('The answer does not say that a payment was made, failed or was returned')
  await takeForSent(tx, { payments: [reference], rail, now })
  await attachToPayment(tx, {
    exception,
    payout: await lockPayout(tx, reference),
    outcome,
    amount,
    key: id,
    charge,
    now,
  })
}

/**
 * Attaches money that the bank booked as one sum, and described only in words, to several payments.
 * @throws Problem `Conflict` if one of the payments does not fit, or they do not add up to the sum
 */
export async function attachToAll(
  tx: Tx,
  { exception, references, now }: { exception: exceptions.Decided; references: readonly string[]; now: Date },
): Promise<void> {
  const { id, rail, amount, currency, bookedOn } = exception
  const outcome = (await isOfChangedBatch(tx, exception)) ? 'paid' : outcomeOf(exception)
  if (amount === null || currency === null || bookedOn === null || (outcome !== 'paid' && outcome !== 'returned'))
    throw conflict('Only money that arrived or left can be attached to several payments')
  await takeForSent(tx, { payments: references, rail, now })
  const payouts = await lockPayouts(tx, references)
  const total = payouts.reduce((sum, payout) => sum + payout.netAmount, 0n)
  const moved = amount < 0n ? -amount : amount
  if (total !== moved || payouts.some(payout => payout.currency !== currency)) {
    const words = (units: bigint) => inWords({ amount: units, currency })
    throw conflict(`The payments add up to ${words(total)}, but the bank booked ${words(moved)}`)
  }
  for (const payout of payouts) {
    const part = {
      amount: outcome === 'returned' ? payout.netAmount : -payout.netAmount,
      key: `${id} ${payout.reference}`,
    }
    await attachToPayment(tx, { exception, payout, outcome, ...part, charge: undefined, now })
  }
}

type AttachedPart = {
  exception: exceptions.Decided
  payout: DecidedPayment
  outcome: FinalOutcome
  amount: bigint | null
  key: string
  charge: Charge | undefined
  now: Date
}

/** @param options.amount this payment's share of the money, and its charge */
async function attachToPayment(
  tx: Tx,
  { exception, payout, outcome, amount, key, charge, now }: AttachedPart,
): Promise<void> {
  const { id, rail, reasonCode, bookedOn } = exception
  const { reference } = payout
  if (payout.rail !== rail || (payout.batchId === null && !payout.isSentAlone))
    throw conflict(`${reference} was not sent through ${rail}`)
  requireCharge({ payout, outcome, amount, charge })
  const booked =
    bookedOn === null
      ? undefined
      : { day: bookedOn, amount: outcome === 'returned' ? payout.netAmount : -payout.netAmount, exceptionId: id }
  // An outcome that a person recorded before needs no second record.
  const entry = bookedOn === null || amount === null ? undefined : { day: bookedOn, amount }
  if (
    payout.outcome === outcome &&
    entry !== undefined &&
    (await explainOutcome(tx, { key, payout, booked: entry, now }))
  )
    return
  // A status or the return has reported the payment; this is the entry that moved the money.
  const explains = outcome === 'paid' && booked !== undefined && (await lacksDebit(tx, payout.reference))
  const isPossible = explains || payout.outcome === null || (payout.outcome === 'paid' && outcome === 'returned')
  if (!isPossible) throw conflict(`The payment ${payout.reference} is already ${payout.outcome}`)
  if (outcome === 'failed') refuseIfPayable(payout, exception.outcome)
  const { partnerId } = payout
  if (charge !== undefined) {
    const isDeducted = outcome === 'paid' && amount !== null && (amount < 0n ? -amount : amount) < payout.netAmount
    await bearCharge(tx, { rail, exceptionId: id, partnerId, charge, isDeducted, now })
  }
  if (explains) {
    await addRecord(tx, { rail, reference, messageId: 'operator', entryKey: key, outcome: null, booked, now })
    return
  }
  const restriction = outcome === 'paid' ? null : restrictionOf(reasonCode)
  await end(tx, { payout, key, outcome, reasonCode, restriction, booked, now })
}

/** Whether the bank debited a batch that may have got other payments between the backup and the restore. */
async function isOfChangedBatch(tx: Tx, { kind, outcome, amount }: exceptions.Decided): Promise<boolean> {
  return (
    kind === 'amount' && outcome === null && amount !== null && amount < 0n && (await findRestore(tx)) !== undefined
  )
}

/** Attaches the debit of a batch, the sum of its payments and a charge, to the batch. */
async function attachToBatch(
  tx: Tx,
  { exception: { id, rail, amount }, batchId, charge, now }: Omit<AttachedAnswer, 'reference'> & { batchId: string },
): Promise<void> {
  const { messageId, controlTotal, currency } = await batches.lock(tx, batchId)
  const { rows } = await sql<{ unpaid: bigint; isBooked: boolean; first: string | null; partners: number }>`
    select coalesce(sum(p.net_amount) filter (where ${isUnpaid}), 0)::bigint as unpaid,
           count(distinct p.partner_id)::integer as partners, min(p.partner_id) as first,
           coalesce(bool_or(exists (select from bank_records r
                                     where r.rail = p.rail and r.reference = p.reference and r.booked_on is not null and r.amount < 0)), false)
           or exists (select true from bank_records r
                       where r.rail = ${rail} and r.reference = ${messageId} and r.booked_on is not null
                         and -r.amount = ${controlTotal} - coalesce(sum(p.net_amount) filter (where ${isUnpaid}), 0))
           or exists (select true from payout_exceptions e
                       where e.rail = ${rail} and e.reference = ${messageId} and e.booked_on is not null
                         and e.decision in ('attach', 'applied')) as is_booked
      from ${paymentsOf(batchId)} p`.execute(tx)
  const { unpaid = 0n, isBooked = false, first = null, partners = 0 } = rows[0] ?? {}
  if (isBooked)
    throw conflict(`The bank has debited ${messageId} before; write this debit off, or ask the bank to return it`)
  const excess = -(amount ?? 0n) - (controlTotal - unpaid)
  const isDeducted = excess < 0n
  const difference = isDeducted ? -excess : excess
  const words = inWords({ amount: difference, currency })
  if (difference === 0n || first === null) throw conflict(`No payment of ${messageId} explains the debit`)
  if (charge?.amount.amount !== difference || charge.amount.currency !== currency)
    throw conflict(
      `The bank debited ${words} ${isDeducted ? 'less' : 'more'} than the payments of ${messageId}; name the charge of ${words}${isDeducted ? ', or give_back the payments that it did not make' : ''}`,
    )
  if (charge.borneBy === 'partner' && partners > 1)
    throw conflict(`${messageId} has payments of several partners, so the operator bears the charge`)
  await endUnanswered(tx, { source: { rail, messageId: 'operator', keyPrefix: id }, batchId, outcome: 'paid', now })
  await bearCharge(tx, { rail, exceptionId: id, partnerId: first, charge, isDeducted, now })
  await batches.settleAnswered(tx, { rail, now })
}

function outcomeOf({ outcome, kind, amount, bookedOn }: exceptions.Decided): FinalOutcome | null {
  const isMoney = kind === 'money_in' || kind === 'money_out' || kind === 'unmatched'
  if (outcome !== null || !isMoney || amount === null || bookedOn === null) return outcome
  return amount > 0n ? 'returned' : 'paid'
}

type ExplainedOutcome = { key: string; payout: DecidedPayment; booked: { day: string; amount: bigint }; now: Date }

/** Accepts an answer as the booking that an operator recorded by hand, unless another answer was. @returns whether it did */
async function explainOutcome(
  tx: Tx,
  { key, payout: { rail, reference }, booked, now }: ExplainedOutcome,
): Promise<boolean> {
  const { rows } = await sql`
    insert into bank_records (rail, message_id, entry_key, reference, created_at)
    select rail, 'operator', ${key} || ' explains ' || entry_key, reference, ${now} from bank_records said
     where rail = ${rail} and reference = ${reference} and message_id = 'operator' and starts_with(entry_key, ${byHandPrefix})
       and booked_on = ${booked.day}::date and amount = ${booked.amount}
       and not exists (select from bank_records r
                        where r.rail = said.rail and r.reference = said.reference and r.message_id = 'operator'
                          and r.entry_key like '% explains ' || said.entry_key)
     order by sequence limit 1
    returning 1`.execute(tx)
  return rows.length > 0
}

/** Warns an operator before attaching an answer to a payment. Nothing is attached automatically: words prove nothing. */
export async function readProposals(
  db: Reader,
  exception: exceptions.Exception,
): Promise<{ proposals: NamedPayment[]; isBookedElsewhere: boolean }> {
  if (exception.closedAt !== null) return { proposals: [], isBookedElsewhere: false }
  const { rows: alike } = await sql`
    select from payout_exceptions e
      join bank_records own on own.rail = e.rail and own.booked_on = e.booked_on and e.fingerprint = own.message_id || ' ' || own.entry_key
      join bank_records other on other.rail = e.rail and other.booked_on = own.booked_on and other.amount = own.amount
                             and other.message_id <> own.message_id
     where e.id = ${exception.id} limit 1`.execute(db)
  return { proposals: await listNamed(db, exception), isBookedElsewhere: alike.length > 0 }
}
