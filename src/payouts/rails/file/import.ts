import { createHash } from 'node:crypto'
import { type Db, sql, type Tx } from '../../../database/database.ts'
import { newId } from '../../../ids.ts'
import type { Currency } from '../../../money.ts'
import type { FinalOutcome } from '../../../withdrawals/lifecycle.ts'
import * as exceptions from '../../exceptions.ts'
import { type BankFileHead, BankFileProblem, type BankRecord, type ReadLimits } from '../bank-files.ts'
import { reasonInWords, reasonOf, restrictionOf } from '../reasons.ts'
import { endUnanswered } from './bank-records.ts'
import * as batches from './batches.ts'
import { type Booked, isIdentified, isReportedAgain, listBooked } from './bookings.ts'
import { debtorsOf } from './debtors.ts'
import { findMovement, settle } from './float-movements.ts'
import type { FileRailSettings } from './format.ts'
import { type KnownPayout, type Match, match } from './matching.ts'
import { lockRail } from './rail-lock.ts'

/** Of one bank file. A batch of 100,000 payments is answered in one or two records each. */
export const limits: ReadLimits = { bytesMax: 1024 * 1024 * 1024, recordsMax: 500_000 }

// Records that are matched at once.
const chunkSize = 1_000

/** What importing a file did. `repeated`: it had been imported before, and nothing was changed. */
export type Imported =
  | { result: 'imported' | 'repeated'; fileId: string; records: number }
  | { result: 'rejected'; problem: string; line: number | null }

/**
 * Imports a file of a bank: all of it, or nothing. What it says about payments becomes reports of the rail; what does not fit
 * becomes exceptions. A file with the same bytes is imported once, and so is each record of a message.
 * @param size in bytes: a file that is too large is refused unread
 * @param bytes reads the file from its beginning; called twice
 */
export async function importBankFile(
  db: Db,
  {
    rail,
    name,
    size,
    bytes,
    now,
  }: { rail: FileRailSettings; name: string; size: number; bytes: () => AsyncIterable<Uint8Array>; now: Date },
): Promise<Imported> {
  let sha256 = ''
  try {
    refuseLarger(size)
    sha256 = await checksum(bytes())
    return await db.transaction().execute(tx => importAll(tx, { rail, name, sha256, bytes, now }))
  } catch (error) {
    if (!(error instanceof BankFileProblem)) throw error
    const { message: problem, line } = error
    await sql`
      insert into bank_files (id, rail, sha256, name, status, problem, received_at)
      values (${newId('bankFile', now)}, ${rail.name}, ${sha256 || `unread ${name}`}, ${name}, 'rejected', ${problem}, ${now})
          on conflict on constraint one_import_per_file
          do update set problem = excluded.problem, received_at = excluded.received_at, name = excluded.name
           where bank_files.status = 'rejected'`.execute(db)
    return { result: 'rejected', problem, line }
  }
}

/** @throws BankFileProblem if the file is too large, also if it has grown since its size was taken */
async function checksum(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of bytes) {
    size += chunk.length
    refuseLarger(size)
    hash.update(chunk)
  }
  return hash.digest('hex')
}

function refuseLarger(size: number): void {
  if (size > limits.bytesMax) throw new BankFileProblem(`The file has more than ${limits.bytesMax} bytes`)
}

type Context = { rail: FileRailSettings; fileId: string; now: Date }

/** A record with the key that recognises it within its message, also when the bank sends the message again. */
type Keyed<T extends BankRecord = BankRecord> = T & { key: string }

async function importAll(
  tx: Tx,
  {
    rail,
    name,
    sha256,
    bytes,
    now,
  }: { rail: FileRailSettings; name: string; sha256: string; bytes: () => AsyncIterable<Uint8Array>; now: Date },
): Promise<Imported> {
  await lockRail(tx, { rail: rail.name, for: 'records' })
  const { rows } = await sql<{ id: string }>`
    insert into bank_files as f (id, rail, sha256, name, status, received_at)
    values (${newId('bankFile', now)}, ${rail.name}, ${sha256}, ${name}, 'imported', ${now})
        on conflict on constraint one_import_per_file
        do update set status = 'imported', problem = null, received_at = excluded.received_at, name = excluded.name
         where f.status = 'rejected'
    returning id`.execute(tx)
  const [file] = rows
  if (file === undefined) {
    const known = await tx
      .selectFrom('bankFiles')
      .select(['id', 'recordCount'])
      .where('rail', '=', rail.name)
      .where('sha256', '=', sha256)
      .executeTakeFirstOrThrow()
    return { result: 'repeated', fileId: known.id, records: known.recordCount }
  }
  const context = { rail, fileId: file.id, now }
  const { records, messageId } = await applyAll(tx, context, rail.format.read(bytes(), limits))
  await sql`
    update bank_files set record_count = ${records}, message_id = ${messageId} where id = ${file.id}`.execute(tx)
  await batches.settleAnswered(tx, { rail: rail.name, now })
  return { result: 'imported', fileId: file.id, records }
}

async function applyAll(
  tx: Tx,
  context: Context,
  parts: AsyncIterable<{ type: 'head'; head: BankFileHead } | BankRecord>,
): Promise<{ records: number; messageId: string }> {
  let head: BankFileHead | undefined
  let messageId: string | undefined
  let records = 0
  let chunk: Keyed[] = []
  // A batch that is rejected comes last: the reasons of single payments say more than its reason.
  let rejections: Keyed[] = []
  let keyOf = keysOfMessage()
  const apply = async () => {
    if (head !== undefined && chunk.length > 0) await applySome(tx, context, { head, records: chunk })
    chunk = []
  }
  const applyRejections = async () => {
    await apply()
    if (head !== undefined && rejections.length > 0) await applySome(tx, context, { head, records: rejections })
    rejections = []
  }
  for await (const part of parts) {
    if (part.type === 'head') {
      await applyRejections()
      if (part.head.messageId !== head?.messageId) keyOf = keysOfMessage()
      head = part.head
      messageId ??= head.messageId
      refuseOtherAccount(context.rail, head)
      continue
    }
    if (head === undefined) throw new BankFileProblem('A record comes before the head of the message', part)
    records += 1
    const record = { ...part, key: keyOf(part) }
    if (record.type === 'batch' && record.state === 'rejected') {
      if (rejections.push(record) === chunkSize) await applyRejections()
    } else if (chunk.push(record) === chunkSize) await apply()
  }
  await applyRejections()
  if (messageId === undefined) throw new BankFileProblem('The file holds no message')
  return { records, messageId }
}

/** A statement of another account must not be booked: not even in part. */
function refuseOtherAccount(rail: FileRailSettings, { account }: BankFileHead): void {
  if (account === null || debtorsOf(rail, account).length > 0) return
  const last = account.replaceAll(/[ -]/g, '').slice(-4).toUpperCase()
  throw new BankFileProblem(`The file is about the account …${last}, which is not one of this rail`)
}

type PaymentRecord = Keyed<Extract<BankRecord, { type: 'payment' }>>

async function applySome(
  tx: Tx,
  context: Context,
  { head, records }: { head: BankFileHead; records: Keyed[] },
): Promise<void> {
  const isNew = await keepNew(tx, context, { head, records })
  // In the order of the file, except that records about single payments are matched together.
  let payments: PaymentRecord[] = []
  const applyPayments = async () => {
    if (payments.length > 0) await answerPayments(tx, context, { head, records: payments })
    payments = []
  }
  for (const record of records) {
    if (!isNew(record)) continue
    if (record.type === 'payment') {
      payments.push(record)
      continue
    }
    await applyPayments()
    switch (record.type) {
      case 'batch':
        await answerBatch(tx, context, { head, record })
        break
      case 'name-check':
        await checkName(tx, context, record)
        break
      case 'balance':
        await keepBalance(tx, context, { head, record })
        break
      case 'entry':
        await bookEntry(tx, context, { head, record })
        break
      default:
        record satisfies never
    }
  }
  await applyPayments()
}

/**
 * Gives the records of one message their keys: the bank's reference of the entry or, without one, what the record says. Bookings
 * with equal keys are told apart by their order, because money moved twice. A line is no part of a key: a bank that sends a
 * message again may break its lines differently.
 */
function keysOfMessage(): (record: BankRecord) => string {
  // Bounded by the number of records that a file may have.
  const bookings = new Map<string, number>()
  return record => {
    const key = contentKeyOf(record)
    if (!('booking' in record)) return key
    const place = (bookings.get(key) ?? 0) + 1
    bookings.set(key, place)
    return place === 1 ? key : `${key} #${place}`
  }
}

function contentKeyOf(record: BankRecord): string {
  switch (record.type) {
    case 'payment': {
      const { reference, state, amount, reasonCode } = record
      const entry = record.entryReference ?? `${amount?.amount ?? ''}${amount?.currency ?? ''} ${reasonCode ?? ''}`
      return `${entry} ${reference} ${state}`
    }
    case 'entry':
      return record.entryReference ?? `${record.reference ?? ''} ${record.amount.amount} ${record.booking.day}`
    case 'batch':
      return `${record.messageId} ${record.state} ${record.reasonCode ?? ''}`
    case 'name-check':
      return `${record.messageId} ${record.reference ?? ''} ${record.code}`
    case 'balance':
      return record.day
    default:
      return record satisfies never
  }
}

async function keepNew(
  tx: Tx,
  { rail }: Context,
  { head, records }: { head: BankFileHead; records: Keyed[] },
): Promise<(record: Keyed) => boolean> {
  const { rows } = await sql<{ entryKey: string }>`
    select entry_key from bank_records
     where rail = ${rail.name} and message_id = ${head.messageId}
       and entry_key = any(${records.map(({ key }) => key)}::text[])`.execute(tx)
  const seen = new Set(rows.map(({ entryKey }) => entryKey))
  return ({ key }) => {
    if (seen.has(key)) return false
    seen.add(key)
    return true
  }
}

type PayoutRow = KnownPayout & {
  reference: string
  partnerId: string
  withdrawalId: string
  /** Its batch, if this is the first answer to it. */
  firstAnswered: string | null
}

async function answerPayments(
  tx: Tx,
  context: Context,
  { head, records }: { head: BankFileHead; records: PaymentRecord[] },
): Promise<void> {
  const { rail, fileId, now } = context
  const { rows } = await sql<PayoutRow>`
    select p.reference, p.partner_id, p.withdrawal_id, p.amount, p.currency, p.outcome,
           p.removed_at is not null as is_removed,
           coalesce(b.status in ('sent', 'acknowledged', 'settled', 'rejected') or b.sending_at is not null, false) as is_sent,
           case when b.sending_at is not null and b.answered_at is null then b.id end as first_answered
      from payouts p left join payout_batches b on b.id = p.batch_id
     where p.rail = ${rail.name} and p.reference = any(${records.map(({ reference }) => reference)}::text[])
     order by p.reference for update of p`.execute(tx)
  const payouts = new Map(rows.map(row => [row.reference, row]))
  const firstAnswered = new Set(rows.map(row => row.firstAnswered).filter(id => id !== null))
  await batches.recordAnswered(tx, { batchIds: [...firstAnswered], now })
  const bookings = await bookingsOf(tx, { rail: rail.name, records })
  const kept: { record: PaymentRecord; outcome: FinalOutcome | null; reason: string | null; booked: Booked | null }[] =
    []
  const changed = new Map<string, { outcome: FinalOutcome; code: string | null; reason: string | null }>()
  const opened: exceptions.NewException[] = []
  for (const record of records) {
    const { reference, line, amount, reasonCode } = record
    const payout = payouts.get(reference)
    const found = match(payout, record)
    const booked = found.result === 'exception' || payout === undefined ? null : bookedOf(record, { head, payout })
    const isBookedTwice = booked !== null && found.result === 'known' && isBookedAnew(booked, bookings)
    const matched = isBookedTwice ? bookedTwice(booked) : found
    if (booked !== null) bookings.set(reference, [...(bookings.get(reference) ?? []), booked])
    const reason = reasonInWords(reasonCode)
    if (matched.result === 'changed' && payout !== undefined) {
      // The next record about the same payment is matched to what this one said.
      payout.outcome = matched.outcome
      changed.set(reference, { outcome: matched.outcome, code: reasonCode, reason })
    }
    if (matched.result === 'exception') {
      opened.push({
        ...{ rail: rail.name, kind: matched.kind, reason: matched.reason, reference, amount, reasonCode, payout },
        fingerprint: fingerprintOf(head, record),
        file: { id: fileId, line },
        outcome: isBookedTwice || record.state === 'accepted' || record.state === 'pending' ? null : record.state,
        ...(isBookedTwice ? { amount: { amount: booked.amount, currency: rail.currency } } : {}),
      })
    }
    kept.push({ record, outcome: matched.result === 'changed' ? matched.outcome : null, reason, booked })
  }
  await sql`
    insert into bank_records (rail, bank_file_id, message_id, entry_key, line, reference, outcome, reason, account, booked_on, amount,
                              bank_reference, created_at)
    select ${rail.name}, ${fileId}, ${head.messageId}, entry_key, line, reference, outcome, reason,
           case when booked_on is not null then ${head.account} end, booked_on, amount, bank_reference, ${now}
      from unnest(${kept.map(({ record }) => record.key)}::text[], ${kept.map(({ record }) => record.line)}::integer[],
                  ${kept.map(({ record }) => record.reference)}::text[], ${kept.map(({ outcome }) => outcome)}::text[],
                  ${kept.map(({ reason }) => reason)}::text[], ${kept.map(({ booked }) => booked?.day ?? null)}::date[],
                  ${kept.map(({ booked }) => booked?.amount ?? null)}::bigint[],
                  ${kept.map(({ booked }) => booked?.bankReference ?? null)}::text[])
             with ordinality as r (entry_key, line, reference, outcome, reason, booked_on, amount, bank_reference, place)
     order by place`.execute(tx)
  const changes = [...changed]
  if (changes.length > 0) {
    await sql`
      update payouts p set outcome = c.outcome, reason_code = c.code, reason = c.reason, restriction = c.restriction
        from unnest(${changes.map(([reference]) => reference)}::text[], ${changes.map(([, { outcome }]) => outcome)}::text[],
                    ${changes.map(([, { code }]) => code)}::text[], ${changes.map(([, { reason }]) => reason)}::text[],
                    ${changes.map(([, { outcome, code }]) => (outcome === 'paid' ? null : restrictionOf(code)))}::text[])
          as c (reference, outcome, code, reason, restriction)
       where p.reference = c.reference`.execute(tx)
  }
  await exceptions.open(tx, opened, now)
}

/** The earlier bookings of the payments that some records say are booked, by reference. */
async function bookingsOf(
  tx: Tx,
  { rail, records }: { rail: string; records: PaymentRecord[] },
): Promise<Map<string, Booked[]>> {
  const references = records.flatMap(({ booking, reference }) => (booking === undefined ? [] : [reference]))
  if (references.length === 0) return new Map()
  return Map.groupBy(await listBooked(tx, { rail, references }), ({ reference }) => reference)
}

function bookedOf(
  { reference, state, booking }: PaymentRecord,
  { head: { messageId, account }, payout: { amount } }: { head: BankFileHead; payout: PayoutRow },
): Booked | null {
  if (booking === undefined) return null
  return { reference, messageId, account, ...booking, amount: state === 'returned' ? amount : -amount }
}

/** Whether a payment or batch that is booked already is booked once more. Before its first booking, only a status told of it. */
function isBookedAnew(booked: Booked, bookings: Map<string, Booked[]>): boolean {
  const known = (bookings.get(booked.reference) ?? []).filter(({ amount }) => amount < 0n === booked.amount < 0n)
  return known.length > 0 && !isReportedAgain(booked, known)
}

function bookedTwice({ amount }: Booked): Extract<Match, { result: 'exception' }> {
  return amount < 0n
    ? {
        result: 'exception',
        kind: 'money_out',
        reason: 'The bank debited the payment a second time; ask it to give that back',
      }
    : { result: 'exception', kind: 'money_in', reason: 'The bank returned the payment a second time; ask it why' }
}

function fingerprintOf(head: BankFileHead, { key }: Keyed): string {
  return `${head.messageId} ${key}`
}

type BatchRow = {
  id: string
  status: string
  controlTotal: bigint
  currency: Currency
  unpaid: bigint
  paidCount: number
  unansweredCount: number
}

/** Locks the batch that the bank answers by its message id; undefined if it is not ours, or was not sent. */
async function lockAnswered(tx: Tx, { rail, now }: Context, messageId: string): Promise<BatchRow | undefined> {
  const { rows } = await sql<BatchRow>`
    select b.id, b.status, b.control_total, b.currency,
           (select coalesce(sum(amount), 0) from payouts where batch_id = b.id and outcome = 'failed' and removed_at is null)::bigint as unpaid,
           (select count(*) from payouts where batch_id = b.id and outcome in ('paid', 'returned'))::integer as paid_count,
           (select count(*) from payouts where batch_id = b.id and outcome is null)::integer as unanswered_count
      from payout_batches b
     where b.rail = ${rail.name} and b.message_id = ${messageId} and b.sending_at is not null
       for update of b`.execute(tx)
  await batches.recordAnswered(tx, { batchIds: rows.map(({ id }) => id), now })
  return rows[0]
}

async function answerBatch(
  tx: Tx,
  context: Context,
  { head, record }: { head: BankFileHead; record: Keyed<Extract<BankRecord, { type: 'batch' }>> },
): Promise<void> {
  const { rail, fileId, now } = context
  const { messageId, state, line, reasonCode } = record
  const openException = async (kind: exceptions.ExceptionKind, reason: string) => {
    const fingerprint = fingerprintOf(head, record)
    const common = { rail: rail.name, file: { id: fileId, line }, fingerprint, reference: messageId, reasonCode }
    await exceptions.open(tx, [{ ...common, kind, reason }], now)
  }
  await keepRecord(tx, context, { head, record, reference: messageId })
  const batch = await lockAnswered(tx, context, messageId)
  if (batch === undefined) return await openException('unmatched', `The bank answers a batch that we did not send`)
  if (state !== 'rejected') {
    await markBatch(tx, { batchId: batch.id, as: 'acknowledged', now })
    return
  }
  if (batch.paidCount > 0)
    return await openException('contradiction', 'The bank rejects a batch of which it has reported payments as paid')
  if (batch.status === 'rejected' || batch.status === 'settled') return
  const { next } = reasonOf(reasonCode)
  if (batch.unansweredCount > 0 && next === 'decide')
    return await openException(
      'duplicate',
      'The bank takes the batch for a duplicate; find out which of the two it paid',
    )
  if (batch.unansweredCount > 0 && next === 'decide_once_funded')
    return await openException('float', 'The paying account lacked the money for the batch; top it up and decide')
  await endAll(tx, context, { head, record, batchId: batch.id, outcome: 'failed', reasonCode })
  await markBatch(tx, { batchId: batch.id, as: 'rejected', now })
}

/** Marks a batch that is at the bank. If its delivery is not recorded yet, because the sender was killed, it is marked then. */
async function markBatch(
  tx: Tx,
  { batchId, as: status, now }: { batchId: string; as: 'acknowledged' | 'rejected'; now: Date },
): Promise<void> {
  const from: batches.BatchStatus[] = status === 'acknowledged' ? ['sent'] : ['sent', 'acknowledged']
  const at = status === 'acknowledged' ? { acknowledgedAt: now } : { endedAt: now }
  const batch = tx.updateTable('payoutBatches').where('id', '=', batchId)
  await batch.set(at).where('status', '=', 'approved').execute()
  await batch
    .set({ ...at, status })
    .where('status', 'in', from)
    .execute()
}

/** Ends the unanswered payments of a batch by a record about all of it. */
async function endAll(
  tx: Tx,
  { rail, fileId, now }: Context,
  {
    head,
    record,
    ...ended
  }: { head: BankFileHead; record: Keyed; batchId: string; outcome: FinalOutcome; reasonCode: string | null },
): Promise<void> {
  const file = { id: fileId, line: record.line }
  const source = { rail: rail.name, messageId: head.messageId, keyPrefix: record.key, file }
  await endUnanswered(tx, { source, ...ended, now })
}

/** Keeps a record that reports no payment, so that it counts once. */
async function keepRecord(
  tx: Tx,
  { rail, fileId, now }: Context,
  {
    head,
    record,
    reference,
    booked,
    movementId,
  }: {
    head: BankFileHead
    record: Keyed
    reference: string
    booked?: Booked | undefined
    movementId?: string | undefined
  },
): Promise<void> {
  await sql`
    insert into bank_records (rail, bank_file_id, message_id, entry_key, line, reference, movement_id, account, booked_on, amount,
                              bank_reference, created_at)
    values (${rail.name}, ${fileId}, ${head.messageId}, ${record.key}, ${record.line}, ${reference}, ${movementId},
            ${booked?.account}, ${booked?.day}::date, ${booked?.amount}, ${booked?.bankReference}, ${now})`.execute(tx)
}

/** A check of a name is no answer about the payment. The worst one is kept with the batch. */
async function checkName(
  tx: Tx,
  { rail }: Context,
  { messageId, code }: Extract<BankRecord, { type: 'name-check' }>,
): Promise<void> {
  await sql`
    update payout_batches set name_check = ${code.slice(0, 35)}
     where rail = ${rail.name} and message_id = ${messageId} and (name_check is null or name_check = 'RCVC')`.execute(
    tx,
  )
}

async function keepBalance(
  tx: Tx,
  { rail, fileId }: Context,
  { head, record }: { head: BankFileHead; record: Extract<BankRecord, { type: 'balance' }> },
): Promise<void> {
  const { amount, day, line } = record
  if (amount.currency !== rail.currency)
    throw new BankFileProblem(`The balance is in ${amount.currency}, but the rail pays ${rail.currency}`, { line })
  await sql`
    insert into bank_balances as b (rail, account, day, amount, currency, bank_file_id)
    values (${rail.name}, ${head.account ?? ''}, ${day}::date, ${amount.amount}, ${amount.currency}, ${fileId})
        on conflict (rail, account, day)
        do update set amount = excluded.amount, bank_file_id = excluded.bank_file_id`.execute(tx)
}

/**
 * An entry of the account that is no single payment of ours: a batch that was booked as a whole, a movement of a float that the
 * operator has recorded, or other money.
 */
async function bookEntry(
  tx: Tx,
  context: Context,
  { head, record }: { head: BankFileHead; record: Keyed<Extract<BankRecord, { type: 'entry' }>> },
): Promise<void> {
  const { rail, fileId, now } = context
  const { amount, booking, remittance, line } = record
  if (amount.currency !== rail.currency)
    throw new BankFileProblem(`The entry is in ${amount.currency}, but the rail pays ${rail.currency}`, { line })
  const { account, messageId } = head
  const reference = record.reference ?? ''
  const booked: Booked = { reference, messageId, account, ...booking, amount: amount.amount }
  const keep = async (more: { booked?: Booked; movementId?: string | undefined } = {}) =>
    await keepRecord(tx, context, { head, record, reference, ...more })
  const openException = async (kind: exceptions.ExceptionKind, reason: string, partnerId?: string) => {
    const fingerprint = fingerprintOf(head, record)
    const common = { rail: rail.name, file: { id: fileId, line }, fingerprint, reference: record.reference, amount }
    await exceptions.open(tx, [{ ...common, kind, reason, partnerId }], now)
  }
  const batch = reference === '' || amount.amount >= 0n ? undefined : await lockAnswered(tx, context, reference)
  if (batch !== undefined) {
    if (-amount.amount !== batch.controlTotal - batch.unpaid) {
      await keep()
      return await openException('amount', 'The bank booked a batch with another amount than its payments add up to')
    }
    const bookings = new Map([[reference, await listBooked(tx, { rail: rail.name, references: [reference] })]])
    await keep({ booked })
    if (isBookedAnew(booked, bookings))
      return await openException('money_out', 'The bank debited the batch a second time; ask it to give that back')
    return await endAll(tx, context, { head, record, batchId: batch.id, outcome: 'paid', reasonCode: null })
  }
  if (await isIdentified(tx, { rail: rail.name, booked })) return await keep({ booked })
  const texts = [record.reference, remittance].filter(text => text !== null)
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
