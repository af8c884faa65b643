import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { type Db, type Reader, sql, type Tx } from '../../database/database.ts'
import { holdByNameIfFree, lockByName } from '../../database/named-locks.ts'
import { conflict } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import type { Money } from '../../kernel/money.ts'
import type { Day } from '../../kernel/time.ts'
import { type BankFileHead, BankFileProblem, type BankRecord, type ReadLimits } from '../formats/bank-files.ts'
import { batchReferencesIn, referencesIn } from '../payments/reference.ts'
import { answerBatch, checkName } from './batch-answers.ts'
import { matchDebits } from './batch-debits.ts'
import * as batches from './batches.ts'
import { debtorOf, debtorsOf } from './debtors.ts'
import { bookEntries, type EntryRecord, keepStatement } from './entries.ts'
import type { FileRailSettings } from './file-rail-settings.ts'
import { answerPayments, type PaymentRecord } from './payment-answers.ts'
import { lockRail } from './rail-lock.ts'
import { type Context, type Keyed, keysOfRecords, toIndexable } from './record-keys.ts'
import { decideRejections, Rejections, readRejected } from './rejections.ts'
import { findRestore, recogniseSent } from './restores.ts'
import { type Block, finishStaged, readStaged, type Said, stage } from './staging.ts'
import { listOwners, Turns } from './turns.ts'

/** The limits of one bank file. A batch of 100,000 payments is answered in one or two records each. */
export const limits: ReadLimits = { bytesMax: 1024 * 1024 * 1024, recordsMax: 500_000 }

// The longest account number; IBANs have 34 characters. The number is part of an index.
const accountCharsMax = 100

// The most accounts that are not of the rail; they are stored with the file. A corporate group has about a hundred.
const skippedAccountsMax = 1_000

// How many records are staged at once.
const stagingSize = 2_000

// How long to wait for other files of the rail; the largest takes a minute or two.
const turnMsMax = 5 * 60_000
const turnPollMs = 100

/** @property skippedAccounts how many accounts of the file are not of the rail; nothing about them is booked */
type Taken = { fileId: string; records: number; skippedAccounts: number }

/** What importing a file did. `repeated`: it had been imported before, and nothing was changed. */
export type Imported =
  | ({ result: 'imported' | 'repeated' } & Taken)
  | { result: 'rejected'; problem: string; line: number | null }

export type RecordImport = (tx: Tx, imported: Taken & { sha256: string }) => Promise<void>

/**
 * Imports a file of a bank: all of it, or nothing. Answers about payments become reports of the rail; answers that do not fit become
 * exceptions. A file with the same bytes is imported once, and so is each record of a message.
 *
 * The file is read and checked whole before any of it is applied. It is then applied in chunks, between which payouts take the lock of the
 * rail. A killed import continues where it stopped when the file comes again, or when the worker next looks.
 * @param size in bytes: a file that is too large is refused unread
 * @param bytes reads the file from its beginning; called twice
 * @param record writes the audit entry, in the transaction that decides that the file will be imported. Imports of the worker have none
 * @throws Problem `Conflict` if the imports of other files of the rail take minutes
 */
export async function importBankFile(
  db: Db,
  { size, ...file }: FileToImport & { size: number; bytes: () => AsyncIterable<Uint8Array> },
): Promise<Imported> {
  const { rail, name, bytes, now } = file
  let sha256 = ''
  try {
    refuseLarger(size)
    sha256 = await checksum(bytes())
    const { status, ...taken } = await db.transaction().execute(tx => stageFile(tx, { ...file, sha256 }))
    if (status === 'imported') return { result: 'repeated', ...taken }
    await applyInTurn(db, { rail, fileId: taken.fileId, now })
    return { result: 'imported', ...taken }
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

type FileToImport = {
  rail: FileRailSettings
  name: string
  bytes: () => AsyncIterable<Uint8Array>
  record?: RecordImport | undefined
  now: Date
}

/** @throws BankFileProblem if the file is too large, even if it grew after its size was read */
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

/**
 * Checks a file and stages its records, unless that was done before: from then on the file will be imported. The file is staged again if
 * the rail has gained one of its accounts since; earlier bookings are recognised.
 * @throws BankFileProblem
 */
async function stageFile(
  tx: Tx,
  { rail, name, sha256, bytes, record, now }: FileToImport & { sha256: string },
): Promise<Taken & { status: 'importing' | 'imported' }> {
  await lockByName(tx, 'bank file', `${rail.name} ${sha256}`)
  const known = await tx
    .selectFrom('bankFiles')
    .select(['id', 'status', 'recordCount', 'skippedAccounts'])
    .where('rail', '=', rail.name)
    .where('sha256', '=', sha256)
    .executeTakeFirst()
  const hasNewAccount = known?.status === 'imported' && known.skippedAccounts.some(account => isOfRail(rail, account))
  if (known !== undefined && known.status !== 'rejected' && !hasNewAccount) {
    const { id: fileId, status, recordCount: records, skippedAccounts } = known
    return { fileId, status, records, skippedAccounts: skippedAccounts.length }
  }
  const fileId = known?.id ?? newId('bankFile', now)
  const rejections = new Rejections()
  const parts = rail.format.read(bytes(), limits)
  const { records, messageId, skipped } = await stageAll(tx, { rail, fileId, parts, rejections, now })
  await sql`
    insert into bank_files (id, rail, sha256, name, status, received_at, record_count, message_id, skipped_accounts, rejected_batches)
    values (${fileId}, ${rail.name}, ${sha256}, ${name}, 'importing', ${now}, ${records}, ${messageId}, ${skipped}::text[],
            ${JSON.stringify(await rejections.listBatches(tx, rail.name))})
        on conflict on constraint one_import_per_file
        do update set status = 'importing', problem = null, received_at = excluded.received_at, name = excluded.name,
                      record_count = excluded.record_count, applied_count = 0, message_id = excluded.message_id,
                      skipped_accounts = excluded.skipped_accounts, rejected_batches = excluded.rejected_batches`.execute(
    tx,
  )
  const taken = { fileId, records, skippedAccounts: skipped.length }
  await record?.(tx, { ...taken, sha256 })
  return { ...taken, status: 'importing' }
}

type FileToStage = {
  rail: FileRailSettings
  fileId: string
  rejections: Rejections
  now: Date
  parts: AsyncIterable<{ type: 'head'; head: BankFileHead } | BankRecord>
}

/** @throws BankFileProblem */
async function stageAll(
  tx: Tx,
  { rail, fileId, parts, rejections, now }: FileToStage,
): Promise<{ records: number; messageId: string; skipped: string[] }> {
  const turns = new Turns()
  let messageId: string | undefined
  let records = 0
  let said: Said[] = []
  // While some records are staged, the next are read.
  let staging = Promise.resolve()
  const isAfterRestore = (await findRestore(tx)) !== undefined
  if (isAfterRestore) await lockRail(tx, { rail: rail.name, for: 'records' })
  const stageSome = async (some: Said[]) => {
    if (isAfterRestore) await recogniseNamed(tx, { rail, said: some, now })
    const owners = await listOwners(tx, { rail, said: some })
    await stage(tx, { fileId, staged: some.map(each => turns.next(each, owners)) })
  }
  const flush = async () => {
    await staging
    staging = stageSome(said)
    said = []
  }
  let head: BankFileHead | undefined
  const keyOf = keysOfRecords()
  const skipped = new Set<string>()
  let isSkipped = false
  let hasOurs = false
  try {
    for await (const read of parts) {
      const part = toIndexable(read)
      rejections.add(part)
      if (part.type === 'head') {
        messageId ??= part.head.messageId
        head = part.head.message === 'camt.052' ? { ...part.head, messageId: interimReports } : part.head
        const other = otherAccount(rail, head)
        isSkipped = other !== undefined
        if (other !== undefined) skip(skipped, other)
        else hasOurs = true
        continue
      }
      if (head === undefined) throw new BankFileProblem('A record comes before the head of the message', part)
      if (isSkipped) continue
      refuseOtherCurrency(rail, part)
      records += 1
      if (said.push({ head, record: { ...part, key: keyOf(head, part) } }) === stagingSize) await flush()
    }
    await flush()
  } finally {
    // Before the transaction ends, even if the file is refused.
    await Promise.allSettled([staging])
  }
  await staging
  if (messageId === undefined) throw new BankFileProblem('The file holds no message')
  if (!hasOurs) throw new BankFileProblem(noneOfOurs([...skipped]))
  return { records, messageId, skipped: [...skipped] }
}

/** After a restore: what the records name was sent before it. */
async function recogniseNamed(
  tx: Tx,
  { rail, said, now }: { rail: FileRailSettings; said: Said[]; now: Date },
): Promise<void> {
  const names = said.flatMap(({ record }) => {
    if (record.type === 'payment') return [record.reference]
    if (record.type === 'batch') return [record.messageId]
    if (record.type !== 'entry' || record.amount.amount > 0n) return []
    const words = [record.reference ?? '', ...record.booking.texts].join(' ')
    return [...referencesIn(words), ...batchReferencesIn(words)]
  })
  await recogniseSent(tx, {
    ...{ rail: rail.name, names, now },
    async addSent(payments) {
      const ids: string[] = []
      for (const [debtor, some] of Map.groupBy(payments, ({ partnerId }) => debtorOf(rail, partnerId)))
        ids.push(await batches.addClosed(tx, { rail, debtor, payments: some, now }))
      return ids
    },
  })
}

/** Stands for the id of an interim report: what such reports say counts once, however many of them repeat it. */
const interimReports = 'camt.052'

function isOfRail(rail: FileRailSettings, account: string): boolean {
  if (account.length > accountCharsMax)
    throw new BankFileProblem(`The number of the account has more than ${accountCharsMax} characters`)
  return debtorsOf(rail, account).length > 0
}

/**
 * Names an account that is not one of the rail. Some banks give the accounts of a customer in several currencies one IBAN, of which
 * only that in the rail's currency is the rail's.
 */
function otherAccount(rail: FileRailSettings, { account, currency = null }: BankFileHead): string | undefined {
  if (account === null) return undefined
  if (!isOfRail(rail, account)) return account
  return currency === null || currency === rail.currency ? undefined : `${account} in ${currency}`
}

/** Nothing in a statement of another account may be booked. */
function skip(skipped: Set<string>, account: string): void {
  skipped.add(account)
  if (skipped.size > skippedAccountsMax)
    throw new BankFileProblem(`The file has more than ${skippedAccountsMax} accounts that are not of this rail`)
}

function noneOfOurs(accounts: string[]): string {
  const shown = accounts.slice(0, 5).map(account => {
    const [number = '', currency] = account.split(' in ')
    const last = number.replaceAll(/[ -]/g, '').slice(-4).toUpperCase()
    return currency === undefined ? `…${last}` : `…${last} in ${currency}`
  })
  if (accounts.length === 1) return `The file is about the account ${shown[0]}, which is not one of this rail`
  const others = accounts.length > shown.length ? ` and ${accounts.length - shown.length} more` : ''
  return `The file is about the accounts ${shown.join(', ')}${others}, none of which is of this rail`
}

/** An entry in another currency cannot be booked, so the file is not what the rail expects. */
function refuseOtherCurrency({ currency: own }: FileRailSettings, record: BankRecord): void {
  const { line } = record
  const refuse = (what: string, money: Money | null) => {
    if (money !== null && money.currency !== own)
      throw new BankFileProblem(`The ${what} is in ${money.currency}, but the rail pays ${own}`, { line })
  }
  if (record.type === 'entry') refuse('entry', record.amount)
  if (record.type === 'statement') for (const balance of [record.opening, record.closing]) refuse('balance', balance)
}

type OneFile = { rail: FileRailSettings; fileId: string; now: Date }

/**
 * Applies a staged file, once no other file of the rail is being applied. Safe to run twice, also concurrently.
 * @throws Problem `Conflict` if that takes too long
 */
async function applyInTurn(db: Db, file: OneFile): Promise<void> {
  const began = performance.now()
  while (!(await applyIfFree(db, file))) {
    if (performance.now() - began > turnMsMax)
      throw conflict('Another file of the rail is being imported; this file will be imported after it')
    await pause(turnPollMs)
  }
}

/** A file whose import was begun and has not ended. */
export type BegunImport = {
  fileId: string
  rail: string
  name: string
  status: 'importing'
  /** How many records the file has. */
  records: number
  /** How many of them are applied. */
  applied: number
  receivedAt: Date
}

/** The files whose import was begun and has not ended, oldest first. @param rail undefined: of all rails */
export async function listBegun(db: Reader, rail?: string): Promise<BegunImport[]> {
  const { rows } = await sql<BegunImport>`
    select id as file_id, rail, name, status, record_count as records, applied_count as applied, received_at from bank_files
     where status = 'importing' ${rail === undefined ? sql`` : sql`and rail = ${rail}`}
     order by received_at, id`.execute(db)
  return rows
}

/** Applies a staged file. @returns false if another file of the rail is being applied */
export async function applyIfFree(db: Db, file: OneFile): Promise<boolean> {
  return await holdByNameIfFree(db, 'import of bank files', file.rail.name, connection =>
    applyStaged(connection, { ...file, db }),
  )
}

/** @param file.db other connections than the one on which the file is applied */
async function applyStaged(connection: Reader, { db, rail, fileId, now }: OneFile & { db: Db }): Promise<void> {
  // Another process may have applied it since.
  if (!(await listBegun(connection, rail.name)).some(each => each.fileId === fileId)) return
  const rejected = await readRejected(connection, fileId)
  const context = { rail, fileId, rejected: new Set(rejected.map(({ id }) => id)), now }
  const read = async (after?: Block) =>
    await db.transaction().execute(async tx => {
      // Without statistics of rows that were staged a moment ago, the planner would sort all of them for each page.
      await sql`select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)`.execute(
        tx,
      )
      return await readStaged(tx, { fileId, after })
    })
  const endRest = () => batches.endRest(connection, { rail: rail.name, now })
  await endRest()
  let staged = await read()
  while (staged.length > 0) {
    // While these are applied, the next are read.
    const next = read(staged.at(-1))
    next.catch(() => undefined)
    for (const chunk of Map.groupBy(staged, ({ step, partnerId }) => `${step} ${partnerId}`).values()) {
      await applyChunk(connection, context, chunk)
      await endRest()
    }
    staged = await next
  }
  await connection.transaction().execute(async tx => {
    await lockRail(tx, { rail: rail.name, for: 'records' })
    await decideRejections(tx, context, rejected)
    await matchDebits(tx, { rail: rail.name, now })
    await batches.settleAnswered(tx, { rail: rail.name, now })
    await sql`update bank_files set status = 'imported' where id = ${fileId} and status = 'importing'`.execute(tx)
  })
  await endRest()
}

/**
 * Applies records of one message, which are about one partner or none. They are so few that the lock of the rail is held for a few
 * tenths of a second.
 */
async function applyChunk(connection: Reader, context: Context, chunk: Block[]): Promise<void> {
  await connection.transaction().execute(async tx => {
    await lockRail(tx, { rail: context.rail.name, for: 'records' })
    // A message can be about several accounts.
    for (const ofAccount of Map.groupBy(chunk, ({ head }) => head.account).values()) {
      const [{ head } = { head: undefined }] = ofAccount
      if (head !== undefined) await applySome(tx, context, { head, said: ofAccount.flatMap(({ records }) => records) })
    }
    await finishStaged(tx, { fileId: context.fileId, blocks: chunk })
  })
}

async function applySome(
  tx: Tx,
  context: Context,
  { head, said }: { head: BankFileHead; said: Keyed[] },
): Promise<void> {
  const payments: PaymentRecord[] = []
  const entries: EntryRecord[] = []
  // An answer about a whole batch is alone in its step.
  for (const record of await withoutKnown(tx, context, { head, records: said })) {
    switch (record.type) {
      case 'payment':
        payments.push(record)
        break
      case 'entry':
        entries.push(record)
        break
      case 'batch':
        await answerBatch(tx, context, { head, record })
        break
      case 'name-check':
        await checkName(tx, context, record)
        break
      case 'statement':
        await keepStatement(tx, context, { head, record })
        break
      default:
        record satisfies never
    }
  }
  if (payments.length > 0) await answerPayments(tx, context, { head, records: payments })
  if (entries.length > 0) await bookEntries(tx, context, { head, records: entries })
}

/** The records that no file has contained before. */
async function withoutKnown(
  tx: Tx,
  { rail }: Context,
  { head, records }: { head: BankFileHead; records: Keyed[] },
): Promise<Keyed[]> {
  type SeenRecord = { entryKey: string; day: Day | null; amount: bigint | null }
  const find = async (keys: string[]) => {
    const { rows } = await sql<SeenRecord>`
      select entry_key, booked_on as day, amount from bank_records
       where rail = ${rail.name} and message_id = ${head.messageId} and entry_key = any(${keys}::text[])`.execute(tx)
    return new Map(rows.map(row => [row.entryKey, row]))
  }
  const known = await find(records.map(({ key }) => key))
  const repeated = records.filter(({ key }) => known.has(key))
  const others = repeated.length === 0 ? known : await find(repeated.map(keyOfOther))
  const seen = new Set([...known.keys(), ...others.keys()])
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

/** The key of an entry if another entry has its usual key: some banks reuse the ids of messages and the numbers of their entries. */
function keyOfOther(record: Keyed): string {
  return record.type === 'entry' ? `${record.key} ${record.amount.amount} ${record.booking.day}` : record.key
}
