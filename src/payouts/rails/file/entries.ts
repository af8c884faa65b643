import { sql, type Tx } from '../../../database/database.ts'
import { inWords } from '../../../money.ts'
import * as exceptions from '../../exceptions.ts'
import type { BankFileHead, BankRecord } from '../bank-files.ts'
import { keepRecord } from './bank-records.ts'
import { type BatchRow, endAll, isGivenBack, lockAnswered } from './batch-answers.ts'
import { debitedTwice } from './batch-debits.ts'
import { type Booked, isIdentified, isReportedAgain, listBooked } from './bookings.ts'
import { findMovement, settle } from './float-movements.ts'
import { type Context, fingerprintOf, type Keyed } from './record-keys.ts'

/**
 * An entry of the account that is no single payment of ours: a batch that was booked as a whole, a movement of a float that the
 * operator has recorded, or other money.
 */
export async function bookEntry(
  tx: Tx,
  context: Context,
  { head, record }: { head: BankFileHead; record: Keyed<Extract<BankRecord, { type: 'entry' }>> },
): Promise<void> {
  const { rail, fileId, now } = context
  const { amount, booking, line } = record
  const { account, messageId } = head
  const reference = record.reference ?? ''
  const { day, bankReference } = booking
  const booked: Booked = { reference, messageId, account, day, bankReference, amount: amount.amount }
  const keep = async (more: { booked: Booked; movementId?: string | undefined }) =>
    await keepRecord(tx, context, { head, record, reference, ...more })
  const openException = async (kind: exceptions.ExceptionKind, reason: string, partnerId?: string) => {
    const fingerprint = fingerprintOf(head, record)
    const common = { rail: rail.name, file: { id: fileId, line }, fingerprint, reference: record.reference, amount }
    await exceptions.open(tx, [{ ...common, bookedOn: booking.day, kind, reason, partnerId }], now)
  }
  const batch = reference === '' || amount.amount >= 0n ? undefined : await lockAnswered(tx, context, reference)
  if (batch !== undefined) {
    const earlier = (await listBooked(tx, { rail: rail.name, references: [reference] })).filter(
      each => each.amount === booked.amount,
    )
    const isRepeated = isReportedAgain(booked, earlier)
    await keep({ booked })
    const debit = -amount.amount
    if (debit !== batch.controlTotal - batch.unpaid) {
      // What did not fit is matched again once the bank reports payments as failed.
      if (isRepeated) return
      if (isGivenBack(batch) || debit === batch.controlTotal)
        return await openException('paid_after_give_back', debitedAfterGiveBack(batch, debit))
      return await openException('amount', 'The bank booked a batch with another amount than its payments add up to')
    }
    if (earlier.length > 0 && !isRepeated) return await openException('money_out', debitedTwice)
    return await endAll(tx, context, { head, record, batchId: batch.id, outcome: 'paid', reasonCode: null })
  }
  if (await isIdentified(tx, { rail: rail.name, booked })) return await keep({ booked })
  const texts = [...(record.reference === null ? [] : [record.reference]), ...booking.texts]
  const entry = { texts, amount, account }
  const recorded = await findMovement(tx, { rail, entry })
  const settled = recorded === undefined ? await settle(tx, { rail, entry, booked, now }) : { movementId: recorded }
  const isExplained = settled !== undefined && 'movementId' in settled
  await keep({ booked, movementId: isExplained ? settled.movementId : undefined })
  if (isExplained) return
  const [kind, unknown] =
    amount.amount > 0n
      ? (['money_in', 'Money arrived that belongs to no payment of ours'] as const)
      : (['money_out', 'Money left the account without a payment of ours'] as const)
  await openException(kind, settled?.reason ?? unknown, settled?.partnerId)
}

function debitedAfterGiveBack(batch: BatchRow, debit: bigint): string {
  const words = (amount: bigint) => inWords({ amount, currency: batch.currency })
  const sum =
    debit === batch.controlTotal ? 'the whole batch' : `${words(debit)} of the batch of ${words(batch.controlTotal)}`
  const what = isGivenBack(batch) ? 'its money' : `${words(batch.unpaid)} of it`
  return `The bank debited ${sum}, but ${what} was given back to the members; find out which payments the bank made`
}

/** Keeps what the bank states of an account. The latest file wins; the pages of a statement complete each other. */
export async function keepStatement(
  tx: Tx,
  { rail, fileId }: Context,
  { head, record }: { head: BankFileHead; record: Extract<BankRecord, { type: 'statement' }> },
): Promise<void> {
  const { day, opening, closing, numbers } = record
  await sql`
    insert into bank_statements as s (rail, account, day, electronic_number, legal_number, opening, closing, currency, bank_file_id)
    values (${rail.name}, ${head.account ?? ''}, ${day}::date, ${numbers.electronic}, ${numbers.legal}, ${opening?.amount ?? null},
            ${closing?.amount ?? null}, ${rail.currency}, ${fileId})
        on conflict on constraint one_statement_per_day_and_number
        do update set opening = coalesce(excluded.opening, s.opening), closing = coalesce(excluded.closing, s.closing),
                      bank_file_id = excluded.bank_file_id`.execute(tx)
}
