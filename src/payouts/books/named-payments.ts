import { type Columns, type Reader, sql } from '../../database/database.ts'
import { conflict } from '../../kernel/errors.ts'
import { referencesIn } from '../payments/reference.ts'
import { isUnpaid, paymentsWhere } from './bank-records.ts'
import { hasReference } from './by-reference.ts'
import type * as exceptions from './exceptions.ts'

/** A payment of a batch that the words of an answer name. */
export type NamedPayment = Columns<
  'payouts',
  'reference' | 'partnerId' | 'withdrawalId' | 'netAmount' | 'currency' | 'outcome'
>

type Words = Pick<exceptions.Exception, 'rail' | 'reference' | 'bankText'>

/** The payments of a rail that the words of an answer name, in any letter case and with any blanks. */
export async function listNamed(db: Reader, { rail, reference, bankText }: Words): Promise<NamedPayment[]> {
  const named = referencesIn([reference, bankText].filter(text => text !== null).join(' '))
  if (named.length === 0) return []
  const { rows } = await sql<NamedPayment>`
    select reference, partner_id, withdrawal_id, net_amount, currency, outcome from payouts
     where rail = ${rail} and ${hasReference(named)} and batch_id is not null order by reference`.execute(db)
  return rows
}

/** Whether the bank has booked a debit of a payment, alone or in the sum of its batch, apart from debits that are left to an operator. */
export async function isDebited(db: Reader, reference: string): Promise<boolean> {
  const { rows } = await sql`select from ${paymentsWhere(hasReference(reference))} p where ${hasDebit}`.execute(db)
  return rows.length > 0
}

/** Whether the bank has made a payment, as a status or its return shows, and has booked no debit of it: the next debit is its own. */
export async function lacksDebit(db: Reader, reference: string): Promise<boolean> {
  const { rows } = await sql`
    select from ${paymentsWhere(hasReference(reference))} p
     where p.outcome in ('paid', 'returned') and not ${isUnpaid}
       and not ${hasDebit}`.execute(db)
  return rows.length > 0
}

/**
 * Refuses to write off a debit that may be the only debit of a payment or batch: once the payment is paid, the books would have the debit
 * twice.
 * @throws Problem `Conflict` that names the decisions that fit
 */
export async function refuseIfOnlyDebit(db: Reader, { rail, reference, bookedOn }: exceptions.Decided): Promise<void> {
  if (bookedOn === null || reference === null) return
  const { rows } = await sql<{ isBatch: boolean }>`
    select p.reference <> ${reference} as is_batch
      from ${paymentsWhere(isOf({ rail, reference }))} p join payout_batches b on b.id = p.batch_id
     where p.rail = ${rail} and b.sending_at is not null
       and p.removed_at is null and not ${isUnpaid} and not ${hasDebit} limit 1`.execute(db)
  const [ours] = rows
  if (ours === undefined) return
  const those = ours.isBatch
    ? 'attach it to the batch with the charge, recover the payments that were given back, or give_back those that the bank did not make'
    : 'attach it to the payment, with the charge that the bank took, or record that the payment has failed'
  throw conflict(`The debit may be the only one of ${reference}, which would be in the books twice; ${those}`)
}

/** SQL: whether a row of `payouts` has a reference, or is one of the batch whose message id it is. */
export function isOf({ rail, reference }: { rail: string; reference: string }) {
  return sql`(${hasReference(reference)}
    or batch_id = (select id from payout_batches where rail = ${rail} and message_id = ${reference}))`
}

/** Whether the bank has debited a batch as a whole, other than by bookings that are left to an operator. */
export async function isBatchDebited(
  db: Reader,
  { rail, messageId }: { rail: string; messageId: string },
): Promise<boolean> {
  const { rows } = await sql`
    select from bank_records r
     where r.rail = ${rail} and r.reference = ${messageId} and r.booked_on is not null and r.amount < 0 and not ${isLeft}
     limit 1`.execute(db)
  return rows.length > 0
}

// SQL: the booking `r` is left to an operator, or was closed as other money.
const isLeft = sql`exists (
  select from bank_records told
    join payout_exceptions e on e.rail = told.rail and e.fingerprint = told.message_id || ' ' || told.entry_key
   where told.rail = r.rail and told.reference = r.reference and told.amount = r.amount
     and coalesce(told.bank_reference = r.bank_reference, told.booked_on = r.booked_on)
     and (e.closed_at is null or e.decision in ('ignore', 'write_off', 'book')))`

// SQL: the bank has booked a debit of the payment `p`.
const hasDebit = sql`exists (
  select from bank_records r
   where r.rail = p.rail and r.booked_on is not null and r.amount < 0
     and r.reference in (p.reference, (select message_id from payout_batches where id = p.batch_id))
     and not ${isLeft})`

/**
 * Refuses to book money as other money if its words name the payment that moved it. The books would lack the payment, and count it again
 * when the bank reports it later.
 * @throws Problem `Conflict` that names the payment and the decision that fits
 */
export async function refuseIfNamed(
  db: Reader,
  { rail, kind, reference, bankText, amount, bookedOn }: exceptions.Decided,
  decision: 'book' | 'write_off',
): Promise<void> {
  const isUnnamed = kind === 'money_in' || kind === 'money_out' || kind === 'unmatched'
  if (!isUnnamed || amount === null || bookedOn === null) return
  const moved = amount < 0n ? -amount : amount
  const named = await listNamed(db, { rail, reference, bankText })
  const isDebit = amount < 0n
  const whose = isDebit ? 'debit' : 'credit'
  if (named.length > 1 && named.reduce((sum, payment) => sum + payment.netAmount, 0n) === moved) {
    const all = await Promise.all(named.map(payment => fitting(db, { payment, isDebit, decision })))
    const references = named.map(payment => payment.reference).join(' and ')
    if (named.every((payment, index) => all[index] === attachTo(payment)))
      throw conflict(
        `The ${whose} names the payments ${references}, which would be in the books twice; attach it to them`,
      )
  }
  const candidates = named.filter(payment => {
    const difference = moved - payment.netAmount
    // More than the payment arrives for no single payment; a charge is less than its payment.
    return amount > 0n ? difference <= 0n : difference < payment.netAmount && -difference < payment.netAmount
  })
  const [payment, ...others] = candidates
  if (payment === undefined || others.length > 0) return
  const fits = await fitting(db, { payment, isDebit, decision })
  if (fits === null) return
  throw conflict(`The ${whose} names the payment ${payment.reference}, which would be in the books twice; ${fits}`)
}

function attachTo({ reference }: NamedPayment): string {
  return `attach it to ${reference}`
}

async function fitting(
  db: Reader,
  { payment, isDebit, decision }: { payment: NamedPayment; isDebit: boolean; decision: 'book' | 'write_off' },
): Promise<string | null> {
  const { reference, outcome } = payment
  const attach = attachTo(payment)
  if (outcome === null) return attach
  if (!isDebit) return outcome === 'paid' ? attach : null
  if (await lacksDebit(db, reference)) return attach
  if (outcome === 'paid') return null
  return decision === 'book' ? `recover ${reference}, or write the debit off` : null
}
