import assert from 'node:assert/strict'
import { sql, type Tx } from '../../database/database.ts'
import { inWords } from '../../kernel/money.ts'
import type { BankFileHead, BankRecord } from '../formats/bank-files.ts'
import { isBatchReference } from '../payments/reference.ts'
import { endUnanswered, type Kept, keepRecords } from './bank-records.ts'
import { type BatchRow, isGivenBack, lockAnswered } from './batch-answers.ts'
import { debitedTwice } from './batch-debits.ts'
import * as batches from './batches.ts'
import { AlikeBookings, type Booked, isReportedAgain, listBooked } from './bookings.ts'
import * as exceptions from './exceptions.ts'
import { Explanations, type OtherMoney } from './float-movements.ts'
import { isBatchDebited } from './named-payments.ts'
import { type Context, fingerprintOf, type Keyed } from './record-keys.ts'
import { findRestore } from './restores.ts'
import { applyRules } from './rules.ts'

export type EntryRecord = Keyed<Extract<BankRecord, { type: 'entry' }>>

type Entries = { head: BankFileHead; records: EntryRecord[] }

/**
 * Books entries of the account that are not single payments of ours: batches that were booked as a whole, movements of floats that
 * the operator has recorded, and other money.
 */
export async function bookEntries(tx: Tx, context: Context, { head, records }: Entries): Promise<void> {
  const batchIds = await batches.listSent(tx, { rail: context.rail.name, messageIds: records.flatMap(debitedBatchOf) })
  const isOfBatch = (record: EntryRecord) => debitedBatchOf(record).some(messageId => batchIds.has(messageId))
  await bookOtherMoney(tx, context, { head, records: records.filter(record => !isOfBatch(record)) })
  for (const record of records.filter(isOfBatch)) await bookBatch(tx, context, { head, record })
}

/** The message id of the batch that an entry may be the debit of. */
export function debitedBatchOf({ amount, reference }: EntryRecord): string[] {
  return amount.amount < 0n && reference !== null ? [reference] : []
}

async function bookBatch(
  tx: Tx,
  context: Context,
  { head, record }: { head: BankFileHead; record: EntryRecord },
): Promise<void> {
  const { rail, now } = context
  const { amount } = record
  const booked = bookedOf(head, record)
  const { reference } = booked
  const openException = async (kind: exceptions.ExceptionKind, reason: string) =>
    await exceptions.open(tx, [{ ...exceptionOf(context, { head, record }), kind, reason }], now)
  const batch = await lockAnswered(tx, context, reference)
  assert(batch !== undefined)
  const earlier = (await listBooked(tx, { rail: rail.name, references: [reference] })).filter(
    each => each.amount === booked.amount,
  )
  const isRepeated = isReportedAgain(booked, earlier)
  const isDebited = await isBatchDebited(tx, { rail: rail.name, messageId: reference })
  await keepRecords(tx, context, { head, kept: [{ record, reference, booked }] })
  await batches.recordSignOfCopy(tx, { batchIds: [batch.id], now })
  // A debit that did not fit is matched again once the bank reports payments as failed, unless it was decided.
  if (isRepeated) return
  const debit = -amount.amount
  if (debit !== batch.controlTotal - batch.unpaid) {
    if (isGivenBack(batch) || debit === batch.controlTotal)
      return await openException('paid_after_give_back', debitedAfterGiveBack(batch, debit))
    return await openException('amount', 'The bank booked a batch with an amount that is not the sum of its payments')
  }
  if (isDebited || earlier.length > 0) return await openException('money_out', debitedTwice)
  const file = { id: context.fileId, line: record.line }
  const source = { rail: rail.name, messageId: head.messageId, keyPrefix: record.key, file }
  await endUnanswered(tx, { source, batchId: batch.id, outcome: 'paid', now })
}

function debitedAfterGiveBack(batch: BatchRow, debit: bigint): string {
  const words = (amount: bigint) => inWords({ amount, currency: batch.currency })
  const sum =
    debit === batch.controlTotal ? 'the whole batch' : `${words(debit)} of the batch of ${words(batch.controlTotal)}`
  const what = isGivenBack(batch) ? 'its money' : `${words(batch.unpaid)} of it`
  return `The bank debited ${sum}, but ${what} was given back to the members; find out which payments the bank made`
}

async function bookOtherMoney(
  tx: Tx,
  context: Context,
  { head, records }: { head: BankFileHead; records: EntryRecord[] },
): Promise<void> {
  const { rail, now } = context
  const bookings = records.map(record => ({ record, booked: bookedOf(head, record) }))
  const alike = await AlikeBookings.read(tx, { rail: rail.name, bookings: bookings.map(({ booked }) => booked) })
  const explanations = await Explanations.read(
    tx,
    rail,
    records.map(record => otherMoneyOf(head, record)),
  )
  const isAfterRestore = (await findRestore(tx)) !== undefined
  const kept: Kept[] = []
  const opened: exceptions.NewException[] = []
  for (const { record, booked } of bookings) {
    const isIdentified = alike.isIdentified(booked)
    const entry = otherMoneyOf(head, record)
    const recorded = isIdentified ? undefined : explanations.takeRecorded(entry)
    const settled =
      isIdentified || recorded !== undefined ? undefined : await explanations.settle(tx, { entry, booked, now })
    const movementId = recorded ?? (settled !== undefined && 'movementId' in settled ? settled.movementId : null)
    kept.push({ record, reference: booked.reference, booked, movementId })
    alike.add(booked)
    if (isIdentified || movementId !== null) continue
    const refusal = settled !== undefined && 'reason' in settled ? settled : undefined
    const [kind, unknown] =
      booked.amount > 0n
        ? (['money_in', 'Money arrived that belongs to no payment of ours'] as const)
        : (['money_out', isAfterRestore && isBatchReference(booked.reference) ? lostBatch : unexplained] as const)
    opened.push({
      ...exceptionOf(context, { head, record }),
      ...{ kind, reason: refusal?.reason ?? unknown, partnerId: refusal?.partnerId },
    })
  }
  await keepRecords(tx, context, { head, kept })
  await exceptions.open(tx, opened, now)
  await applyRules(tx, { rail: rail.name, fingerprints: opened.map(({ fingerprint }) => fingerprint), now })
}

const unexplained = 'Money left the account without a payment of ours'
const lostBatch = 'The bank debited a batch that the restored books do not know; attach the debit to its payments'

/** The parts of an entry that may explain it. */
export function otherMoneyOf({ account }: BankFileHead, { reference, booking, amount }: EntryRecord): OtherMoney {
  return { texts: [...(reference === null ? [] : [reference]), ...booking.texts], amount, account }
}

function bookedOf({ account, message, messageId }: BankFileHead, { reference, booking, amount }: EntryRecord): Booked {
  const { day, bankReference } = booking
  return { reference: reference ?? '', message, messageId, account, day, bankReference, amount: amount.amount }
}

function exceptionOf({ rail, fileId }: Context, { head, record }: { head: BankFileHead; record: EntryRecord }) {
  const { line, reference, amount, booking } = record
  return {
    ...{ rail: rail.name, file: { id: fileId, line }, fingerprint: fingerprintOf(head, record) },
    ...{ reference, amount, account: head.account, bookedOn: booking.day, bankText: booking.texts.join(' ') || null },
  }
}

/** Stores the balance that the bank states for an account. The latest file wins; the pages of a statement complete each other. */
export async function keepStatement(
  tx: Tx,
  { rail, fileId }: Context,
  { head, record }: { head: BankFileHead; record: Extract<BankRecord, { type: 'statement' }> },
): Promise<void> {
  const { day, coversFrom, opening, closing, numbers } = record
  await sql`
    insert into bank_statements as s (rail, account, day, covers_from, electronic_number, legal_number, opening, closing, currency, bank_file_id)
    values (${rail.name}, ${head.account ?? ''}, ${day}::date, ${coversFrom}::date, ${numbers.electronic}, ${numbers.legal}, ${opening?.amount ?? null},
            ${closing?.amount ?? null}, ${rail.currency}, ${fileId})
        on conflict on constraint one_statement_per_day_and_number
        do update set opening = coalesce(excluded.opening, s.opening), closing = coalesce(excluded.closing, s.closing),
                      covers_from = coalesce(excluded.covers_from, s.covers_from),
                      bank_file_id = excluded.bank_file_id`.execute(tx)
}
