import { createHash } from 'node:crypto'
import { type Db, sql, type Tx } from '../../../database/database.ts'
import { newId } from '../../../ids.ts'
import type { Day } from '../../../time.ts'
import { type BankFileHead, BankFileProblem, type BankRecord, type ReadLimits } from '../bank-files.ts'
import { answerBatch, checkName } from './batch-answers.ts'
import { matchDebits } from './batch-debits.ts'
import * as batches from './batches.ts'
import { debtorsOf } from './debtors.ts'
import { bookEntry, keepStatement } from './entries.ts'
import type { FileRailSettings } from './format.ts'
import { answerPayments, type PaymentRecord } from './payment-answers.ts'
import { lockRail } from './rail-lock.ts'
import { type Context, type Keyed, keysOfMessage, toIndexable } from './record-keys.ts'

/** Of one bank file. A batch of 100,000 payments is answered in one or two records each. */
export const limits: ReadLimits = { bytesMax: 1024 * 1024 * 1024, recordsMax: 500_000 }

// Of the number of an account; IBANs have 34. It is part of an index.
const accountCharsMax = 100

// Records that are matched at once.
const chunkSize = 1_000

/** What importing a file did. `repeated`: it had been imported before, and nothing was changed. */
export type Imported =
  | { result: 'imported' | 'repeated'; fileId: string; records: number }
  | { result: 'rejected'; problem: string; line: number | null }

export type RecordImport = (tx: Tx, imported: { fileId: string; sha256: string; records: number }) => Promise<void>

/**
 * Imports a file of a bank: all of it, or nothing. What it says about payments becomes reports of the rail; what does not fit
 * becomes exceptions. A file with the same bytes is imported once, and so is each record of a message.
 * @param size in bytes: a file that is too large is refused unread
 * @param bytes reads the file from its beginning; called twice
 * @param record writes the audit entry of a file that is imported, in the same transaction. What the worker imports has none
 */
export async function importBankFile(
  db: Db,
  {
    rail,
    name,
    size,
    bytes,
    record,
    now,
  }: {
    rail: FileRailSettings
    name: string
    size: number
    bytes: () => AsyncIterable<Uint8Array>
    record?: RecordImport
    now: Date
  },
): Promise<Imported> {
  let sha256 = ''
  try {
    refuseLarger(size)
    sha256 = await checksum(bytes())
    return await db.transaction().execute(tx => importAll(tx, { rail, name, sha256, bytes, record, now }))
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

async function importAll(
  tx: Tx,
  {
    rail,
    name,
    sha256,
    bytes,
    record,
    now,
  }: {
    rail: FileRailSettings
    name: string
    sha256: string
    bytes: () => AsyncIterable<Uint8Array>
    record: RecordImport | undefined
    now: Date
  },
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
  await matchDebits(tx, { rail: rail.name, now })
  await batches.settleAnswered(tx, { rail: rail.name, now })
  await record?.(tx, { fileId: file.id, sha256, records })
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
  for await (const read of parts) {
    const part = toIndexable(read)
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
  if (account === null) return
  if (account.length > accountCharsMax)
    throw new BankFileProblem(`The number of the account has more than ${accountCharsMax} characters`)
  if (debtorsOf(rail, account).length > 0) return
  const last = account.replaceAll(/[ -]/g, '').slice(-4).toUpperCase()
  throw new BankFileProblem(`The file is about the account …${last}, which is not one of this rail`)
}

async function applySome(
  tx: Tx,
  context: Context,
  { head, records }: { head: BankFileHead; records: Keyed[] },
): Promise<void> {
  // In the order of the file, except that records about single payments are matched together.
  let payments: PaymentRecord[] = []
  const applyPayments = async () => {
    if (payments.length > 0) await answerPayments(tx, context, { head, records: payments })
    payments = []
  }
  for (const record of await withoutKnown(tx, context, { head, records })) {
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
      case 'statement':
        await keepStatement(tx, context, { head, record })
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

/** Those records that no file has brought before. */
async function withoutKnown(
  tx: Tx,
  { rail }: Context,
  { head, records }: { head: BankFileHead; records: Keyed[] },
): Promise<Keyed[]> {
  const keys = records.flatMap(record => [record.key, keyOfOther(record)])
  const { rows } = await sql<{ entryKey: string; day: Day | null; amount: bigint | null }>`
    select entry_key, booked_on as day, amount from bank_records
     where rail = ${rail.name} and message_id = ${head.messageId} and entry_key = any(${keys}::text[])`.execute(tx)
  const known = new Map(rows.map(row => [row.entryKey, row]))
  const seen = new Set(known.keys())
  const result: Keyed[] = []
  for (const record of records) {
    const earlier = known.get(record.key)
    const isOther =
      record.type === 'entry' &&
      earlier !== undefined &&
      earlier.amount !== null &&
      (earlier.amount !== record.amount.amount || earlier.day !== record.booking.day)
    const key = isOther ? keyOfOther(record) : record.key
    if (!seen.has(key)) result.push({ ...record, key })
    seen.add(key)
  }
  return result
}

/** The key of an entry whose usual key another entry has: some banks use the id of a message and the numbers of its entries again. */
function keyOfOther(record: Keyed): string {
  return record.type === 'entry' ? `${record.key} ${record.amount.amount} ${record.booking.day}` : record.key
}
