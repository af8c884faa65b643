import { type Reader, sql, type Tx } from '../../database/database.ts'
import { conflict } from '../../kernel/errors.ts'
import { type Currency, inWords } from '../../kernel/money.ts'
import type { FinalOutcome } from '../../withdrawals/lifecycle.ts'
import { isUnpaid, listWrittenOff, paymentsOf, paymentsWhere, recoverPayments } from './bank-records.ts'
import { matchDebits } from './batch-debits.ts'
import * as batches from './batches.ts'
import { byReference, hasReference } from './by-reference.ts'
import { lockPayout } from './decided-payments.ts'
import * as exceptions from './exceptions.ts'
import { lacksDebit } from './named-payments.ts'

// The bank has made payments that were given back: the members repay them, or the operator bears them.

/** A payment that was given back. */
type GivenBack = { reference: string; partnerId: string; netAmount: bigint; currency: Currency }

type RecoveryDecision = { exception: exceptions.Decided; references: readonly string[] | undefined; now: Date }

/**
 * Recovers payments that the bank made after their money was given back. The withdrawals follow with the next reports of the rail.
 * @param references the payments that the bank made. Omit them for all payments of a batch that were given back; a debit that names no
 *   payment needs them
 * @throws Problem `Conflict` if the payments do not explain what the bank debited
 */
export async function recover(tx: Tx, { exception, references, now }: RecoveryDecision): Promise<void> {
  const { id, rail, bookedOn } = exception
  const { batchId, payments } = await lockGivenBack(tx, { exception, references })
  if (bookedOn === null) await refuseIfWrittenOff(tx, { rail, references: payments.map(({ reference }) => reference) })
  const recovered = await recoverPayments(tx, {
    ...{ rail, exceptionId: id, references: payments.map(({ reference }) => reference), now },
    bookedOn: isUnnamedDebit(exception) ? bookedOn : null,
  })
  if (batchId === null || bookedOn === null) await closeExplained(tx, { exception, recovered, batchId, now })
  // The decided debit must be the one that the payments explain.
  else {
    await matchDebits(tx, { rail, recoveredBatchId: batchId, now })
    await refuseUnlessClosed(tx, exception)
  }
  await closeAcceptances(tx, { exception, recovered, now })
  await restateOthers(tx, { exception, recovered })
  await batches.settleAnswered(tx, { rail, now })
}

/** Locks the given-back payments that a decision concerns, and checks that they explain the debit. */
export async function lockGivenBack(
  tx: Tx,
  { exception, references = [] }: { exception: exceptions.Decided; references?: readonly string[] | undefined },
): Promise<{ batchId: string | null; payments: GivenBack[] }> {
  const { rail, kind, reference, amount, bookedOn } = exception
  if (isUnnamedDebit(exception)) return { batchId: null, payments: await lockNamed(tx, { exception, references }) }
  if (kind !== 'paid_after_give_back' || reference === null)
    throw conflict('Only payments that the bank made after their money was given back can be recovered')
  const debit = bookedOn === null || amount === null ? null : -amount
  const batch = await findBatch(tx, { rail, messageId: reference })
  if (batch === undefined) {
    if (references.length > 0) throw conflict('Payments are named only if the exception is about a batch')
    const { outcome, ...payment } = await lockPayout(tx, reference)
    refuseUnlessGivenBack(reference, outcome)
    if (debit !== null) await refuseIfOwnDebit(tx, reference)
    if (debit !== null && debit !== payment.netAmount)
      throw conflict(
        `The bank debited ${inWords({ amount: debit, currency: payment.currency })}, but the payment is for ${inWords({ amount: payment.netAmount, currency: payment.currency })}; ask the bank`,
      )
    return { batchId: null, payments: [payment] }
  }
  const { id: batchId, currency, controlTotal } = await batches.lock(tx, batch.id)
  const all = await lockUnpaid(tx, batchId)
  const unknown = references.find(each => !all.some(payment => payment.reference === each))
  if (unknown !== undefined) throw conflict(`${unknown} is not a payment of the batch ${reference} that was given back`)
  const payments = references.length === 0 ? all : all.filter(payment => references.includes(payment.reference))
  if (payments.length === 0) throw conflict(`No payment of the batch ${reference} is given back`)
  if (debit !== null) {
    const words = (units: bigint) => inWords({ amount: units, currency })
    const missing = debit - (controlTotal - sum(all))
    if (sum(payments) !== missing)
      throw conflict(
        `The payments add up to ${words(sum(payments))}, but the debit of ${words(debit)} holds ${words(missing)} that were given back; name the payments that the bank made`,
      )
  }
  return { batchId, payments }
}

/** Whether the bank debited money without naming a payment or batch as banks do: its words may name one. */
function isUnnamedDebit({ kind, amount, bookedOn }: exceptions.Decided): boolean {
  return (kind === 'money_out' || kind === 'unmatched') && bookedOn !== null && amount !== null && amount < 0n
}

/** Locks the payments that an operator takes a debit for. They must have been given back, and add up to it. */
async function lockNamed(
  tx: Tx,
  { exception, references }: { exception: exceptions.Decided; references: readonly string[] },
): Promise<GivenBack[]> {
  const { rail, amount, currency } = exception
  if (references.length === 0)
    throw conflict('The bank names no payment; name those that it made after their money was given back')
  const payments: GivenBack[] = []
  // In the order in which all code locks several payments of a batch.
  for (const reference of [...new Set(references)].sort()) {
    const { outcome, ...payment } = await lockPayout(tx, reference)
    if (payment.rail !== rail) throw conflict(`${reference} was not sent through ${rail}`)
    refuseUnlessGivenBack(reference, outcome)
    await refuseIfOwnDebit(tx, payment.reference)
    payments.push(payment)
  }
  const debit = -(amount ?? 0n)
  if (sum(payments) !== debit || payments.some(payment => payment.currency !== currency)) {
    const words = (units: bigint) => inWords({ amount: units, currency: currency ?? 'EUR' })
    throw conflict(
      `The payments add up to ${words(sum(payments))}, but the bank debited ${words(debit)}; name the payments that it made`,
    )
  }
  return payments
}

function refuseUnlessGivenBack(reference: string, outcome: FinalOutcome | null): void {
  if (outcome !== 'failed' && outcome !== 'returned')
    throw conflict(`The payment ${reference} is ${outcome ?? 'not answered'}; its money was not given back`)
}

/** Refuses the debit of a payment before its return, which the payee does not have. */
async function refuseIfOwnDebit(db: Reader, reference: string): Promise<void> {
  if (await lacksDebit(db, reference))
    throw conflict(
      `No other debit of ${reference} is booked, so this one may be the payment before its return; attach it to ${reference}`,
    )
}

/** Refuses what an acceptance or status says of payments whose debit the operator bears: it tells of the same money. */
async function refuseIfWrittenOff(
  db: Reader,
  payments: { rail: string; references: readonly string[] },
): Promise<void> {
  const [found] = await listWrittenOff(db, payments)
  if (found !== undefined)
    throw conflict(
      `The debit of ${found} is written off, so it cannot also be recovered; close the exception with ignore`,
    )
}

/** A batch of a rail, by the id under which its file went to the bank. */
export async function findBatch(
  db: Reader,
  { rail, messageId }: { rail: string; messageId: string },
): Promise<{ id: string } | undefined> {
  return await db
    .selectFrom('payoutBatches')
    .select('id')
    .where('rail', '=', rail)
    .where('messageId', '=', messageId)
    .executeTakeFirst()
}

/** In the order in which all code locks several payments of a batch. */
async function lockUnpaid(tx: Tx, batchId: string): Promise<GivenBack[]> {
  const { rows } = await sql<{ reference: string }>`
    select p.reference from ${paymentsOf(batchId)} p where ${isUnpaid}`.execute(tx)
  const references = rows.map(({ reference }) => reference)
  const payments: GivenBack[] = []
  for (const isNamed of references.length === 0 ? [] : await byReference(tx, references)) {
    const locked = await sql<GivenBack>`
      select reference, partner_id, net_amount, currency from payouts where ${isNamed()}
       order by reference for update`.execute(tx)
    payments.push(...locked.rows)
  }
  return payments
}

function sum(payments: readonly GivenBack[]): bigint {
  return payments.reduce((total, { netAmount }) => total + netAmount, 0n)
}

async function refuseUnlessClosed(tx: Tx, { id, reference }: exceptions.Decided): Promise<void> {
  const { rows } = await sql`select from payout_exceptions where id = ${id} and closed_at is not null`.execute(tx)
  if (rows.length === 0) throw conflict(`An earlier debit of ${reference} has the same amount; decide that one first`)
}

type RecoveredPayments = {
  exception: exceptions.Decided
  recovered: readonly string[]
  batchId: string | null
  now: Date
}

/**
 * Closes the debit that an acceptance or status had announced: of the batch, or else of each payment. A debit that is itself decided
 * explains only itself.
 */
async function closeExplained(
  tx: Tx,
  { exception: { id, rail, bookedOn }, recovered, batchId, now }: RecoveredPayments,
): Promise<void> {
  if (bookedOn !== null) return
  const of = batchId ?? (await batchOf(tx, recovered))
  if (of !== null) await matchDebits(tx, { rail, recoveredBatchId: of, now })
  const which = sql`
    e.id in (select distinct on (e.reference) e.id
                    from payout_exceptions e
                    join ${paymentsWhere(hasReference(recovered))} p on p.reference = e.reference and p.rail = e.rail
                    join payout_batches b on b.id = p.batch_id
                   where e.rail = ${rail} and e.closed_at is null and e.kind = 'paid_after_give_back'
                     and e.booked_on is not null and e.id <> ${id} and -e.amount = p.net_amount
                     -- A batch that was debited as a whole has paid them already.
                     and not exists (select from payout_exceptions whole
                                      where whole.rail = e.rail and whole.reference = b.message_id and whole.closed_at = ${now}
                                        and whole.decision = 'applied' and whole.booked_on is not null)
                   order by e.reference, e.id)`
  await exceptions.closeAutomatically(tx, { which, now })
}

async function batchOf(tx: Tx, references: readonly string[]): Promise<string | null> {
  const { rows } = await sql<{ batchId: string | null }>`
    select batch_id from payouts where ${hasReference(references)} limit 1`.execute(tx)
  return rows[0]?.batchId ?? null
}

/** Closes the exceptions that only say that the bank accepts or has paid the payments, or their batch once none of it is given back. */
async function closeAcceptances(tx: Tx, { exception, recovered, now }: OfRecovery & { now: Date }): Promise<void> {
  const which = sql`${await isOfRecovered(tx, { exception, recovered })} and e.booked_on is null`
  await exceptions.closeAutomatically(tx, { which, now })
}

/**
 * The remaining debits of payments, or of a batch, once none of their money is given back: either reported twice, or money that left twice.
 */
async function restateOthers(tx: Tx, { exception, recovered }: OfRecovery): Promise<void> {
  await sql`
    update payout_exceptions e set kind = 'money_out', reason = ${debitedBesides}
     where ${await isOfRecovered(tx, { exception, recovered })} and e.closed_at is null and e.booked_on is not null`.execute(
    tx,
  )
}

type OfRecovery = { exception: exceptions.Decided; recovered: readonly string[] }

/** SQL: another exception `e` is about recovered payments, or about a batch of them of which nothing is given back any longer. */
async function isOfRecovered(db: Reader, { exception: { id, rail }, recovered }: OfRecovery) {
  const { rows } = await sql<{ messageId: string; batchId: string }>`
    select b.id as batch_id, b.message_id from payout_batches b
     where b.rail = ${rail} and b.id = any(array(select distinct batch_id from payouts where ${hasReference(recovered)}))`.execute(
    db,
  )
  const names = [...recovered]
  for (const { batchId, messageId } of rows) if (await isPaidWhole(db, batchId)) names.push(messageId)
  return sql`
    e.rail = ${rail} and e.kind = 'paid_after_give_back' and e.id <> ${id} and e.reference = any(${names}::text[])`
}

async function isPaidWhole(db: Reader, batchId: string): Promise<boolean> {
  const { rows } = await sql`select from ${paymentsOf(batchId)} p where ${isUnpaid} limit 1`.execute(db)
  return rows.length === 0
}

const debitedBesides =
  'The bank debited this besides another debit that was recovered; ignore it if both are the same money, otherwise ask the bank to give it back'
