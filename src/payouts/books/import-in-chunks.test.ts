import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { euroRail, FileBank } from '../../../test/banks/file-bank.ts'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { preparePayments } from '../../../test/payouts/prepared-payments.ts'
import { sql } from '../../database/database.ts'
import { holdByNameIfFree } from '../../database/named-locks.ts'
import type { TaskName } from '../../worker/task.ts'
import type { Channel } from '../channels/channel.ts'
import { fileChannel } from '../channels/files/channel.ts'
import { markExported } from '../channels/files/export.ts'
import type { Payment } from '../payments/payment.ts'
import { type BatchStatus, batchStatuses } from './batch-lifecycle.ts'
import { closeException } from './decisions.ts'
import { list } from './exceptions.ts'
import type { FileRailSettings } from './file-rail-settings.ts'
import { applyIfFree, importBankFile, listBegun, type RecordImport } from './import.ts'

vi.setConfig({ testTimeout: 60_000 })

// 11:00 in Berlin, on a Tuesday.
const tuesday = new Date('2026-03-10T10:00:00.000Z')
const tuesdayEvening = new Date('2026-03-10T17:00:00.000Z')
const wednesdayEvening = new Date('2026-03-11T17:00:00.000Z')

const uk = { accountHolder: 'Ada Okafor', sortCode: '200000', accountNumber: '55779911' }

let harness: Harness
let bank: FileBank
let settings: FileRailSettings
let rail: Channel
beforeAll(async () => {
  harness = await startHarness({ bankOf: currency => (currency === 'EUR' ? 'connected' : 'simulated') })
})
afterAll(() => harness.stop())

let named = 0
beforeEach(() => {
  harness.clock.set(tuesday)
  named += 1
  bank = new FileBank()
  settings = euroRail({ name: `chunks-${named}`, delivery: async () => bank })
  rail = fileChannel({ db: harness.db, now: harness.clock.now, settings })
})

const run = (task: TaskName, of = rail) => harness.runTask(task, { channels: [of] })

/** Payments of one batch that is at the bank. */
async function sent(count: number): Promise<{ payments: Payment[]; messageId: string }> {
  const payments = await preparePayments(harness, { rail: settings.name, count })
  return await send(payments)
}

async function send(payments: Payment[]): Promise<{ payments: Payment[]; messageId: string }> {
  await rail.submit(payments, AbortSignal.timeout(60_000))
  harness.clock.set(tuesdayEvening)
  await run('send-payout-batches')
  return { payments, messageId: (await batch()).messageId }
}

/** The same for another partner. */
async function preparedForOther(count: number): Promise<Payment[]> {
  const { partner, key } = harness.other
  const call: Harness['call'] = (method, path, options) => harness.call(method, path, { key, ...options })
  const addMember: Harness['addMember'] = options => harness.addMember({ key, ...options })
  return await preparePayments({ ...harness, partner, call, addMember }, { rail: settings.name, count })
}

const batch = (among: readonly BatchStatus[] = batchStatuses) =>
  harness.db
    .selectFrom('payoutBatches')
    .select(['id', 'messageId', 'status', 'controlTotal'])
    .where('rail', '=', settings.name)
    .where('status', 'in', among)
    .executeTakeFirstOrThrow()

async function importLines(
  lines: string[],
  { record, of = settings }: { record?: RecordImport; of?: FileRailSettings } = {},
) {
  const content = Buffer.from([...lines, 'end'].join('\n'))
  const bytes = async function* () {
    yield content
  }
  const file = { name: 'file.txt', size: content.length, bytes, record, now: harness.clock.now() }
  return await importBankFile(harness.db, { rail: of, ...file })
}

const foreign = (count: number, message: string) => [
  `head;${message}`,
  ...Array.from({ length: count }, (_, number) => `entry;${100 + number}EUR;INVOICE ${number};${message}-${number}`),
]

/** Counts the rows about the rail. */
async function counts() {
  const { rows } = await sql<{ records: number; exceptions: number; staged: number; outcomes: number }>`
    select (select count(*) from bank_records where rail = ${settings.name})::integer as records,
           (select count(*) from payout_exceptions where rail = ${settings.name})::integer as exceptions,
           (select count(*) from payouts where rail = ${settings.name} and outcome is not null)::integer as outcomes,
           (select coalesce(sum(record_count), 0) from staged_bank_records)::integer as staged`.execute(harness.db)
  return rows[0]
}

test('a file of many chunks is imported whole, with payments and other money in any order', async () => {
  const { payments, messageId } = await sent(1_050)
  const mixed = payments.flatMap(({ reference }, number) => [
    `paid;${reference};5000EUR;;P${number};2026-03-10`,
    `entry;${100 + number}EUR;INVOICE ${number};E${number}`,
  ])
  const imported = await importLines(['head;M1', ...mixed, `batch;${messageId};acknowledged`])
  expect(imported).toMatchObject({ result: 'imported', records: 2_101 })
  expect(await counts()).toEqual({ records: 2_101, exceptions: 1_050, staged: 0, outcomes: 1_050 })
  expect(await batch()).toMatchObject({ status: 'settled' })
})

test('no transaction is about payments of two partners, however they are mixed in the file', async () => {
  const mine = await preparePayments(harness, { rail: settings.name, count: 40 })
  const theirs = await preparedForOther(40)
  await send([...mine, ...theirs])
  const answers = mine.flatMap(({ reference }, number) => [
    `paid;${reference};5000EUR`,
    `failed;${theirs[number]?.reference};5000EUR;AC04`,
    `entry;${100 + number}EUR;INVOICE ${number};E${number}`,
  ])
  await importLines(['head;M1', ...answers])
  expect(await counts()).toMatchObject({ records: 120, exceptions: 40, outcomes: 80 })
  // The transaction that wrote a row last.
  const { rows } = await sql<{ partners: number; writers: number }>`
    select count(distinct partner_id)::integer as partners, count(distinct xmin::text)::integer as writers
      from payouts where rail = ${settings.name}`.execute(harness.db)
  expect(rows).toEqual([{ partners: 2, writers: 2 }])
})

test('a file whose last record is broken books nothing, and leaves nothing behind', async () => {
  const { payments } = await sent(1_050)
  const answers = payments.map(({ reference }) => `paid;${reference};5000EUR`)
  for (const last of ['nonsense', 'entry;-5GBP;charges;C1'])
    expect(await importLines(['head;M1', ...answers, last])).toMatchObject({ result: 'rejected', line: 1_052 })
  expect(await counts()).toEqual({ records: 0, exceptions: 0, staged: 0, outcomes: 0 })
  expect(await listBegun(harness.db, settings.name)).toEqual([])
})

test('a payout beside an import waits for one chunk at most', async () => {
  const records = 6_000
  const payments = await preparePayments(harness, { rail: settings.name, count: 200 })
  const importing = importLines(foreign(records, 'M1'))
  let isOver = false
  const ended = importing.finally(() => {
    isOver = true
  })
  const seen: number[] = []
  for (const payment of payments) {
    if (isOver) break
    // The format cannot write it, so it is recorded as failed, under the lock that the import takes for each chunk.
    await rail.submit([{ ...payment, account: uk }], AbortSignal.timeout(60_000))
    const [begun] = await listBegun(harness.db, settings.name)
    if (begun !== undefined) seen.push(begun.applied)
  }
  expect(await ended).toMatchObject({ result: 'imported', records })
  // Several payments were recorded between chunks, not only before the first and after the last.
  expect(new Set(seen.filter(applied => applied > 0 && applied < records)).size).toBeGreaterThan(1)
})

test('an import waits for another one of its rail, and payouts wait for neither', async () => {
  const { messageId } = await sent(2)
  await importLines(['head;M0', 'entry;700EUR;INVOICE;E0'])
  const bringing = await preparePayments(harness, { rail: settings.name, count: 2 })
  const submitting = bringing.map((payment, index) => ({ ...payment, account: index === 0 ? payment.account : uk }))
  const free = () => holdByNameIfFree(harness.db, 'import of bank files', settings.name, async () => undefined)
  let waiting: ReturnType<typeof importLines> | undefined
  // What every import of the rail holds while it applies a file.
  const isHeld = await holdByNameIfFree(harness.db, 'import of bank files', settings.name, async () => {
    waiting = importLines(['head;M1', `batch;${messageId};acknowledged`, 'entry;800EUR;INVOICE;E1'])
    waiting.catch(() => undefined)
    const find = () => listBegun(harness.db, settings.name)
    const [begun] = await vi.waitUntil(async () => ((await find()).length > 0 ? await find() : undefined), 60_000)
    expect(await applyIfFree(harness.db, { rail: settings, fileId: begun?.fileId ?? '', now: tuesday })).toBe(false)

    // One joins a batch, and the format cannot write the other, which is recorded under the lock of the rail's records.
    const reports = await rail.submit(submitting, AbortSignal.timeout(60_000))
    expect(reports.map(({ outcome }) => outcome)).toEqual(['pending', 'failed'])
    await preparePayments(harness, { rail: settings.name, count: 1 })
    const byHand = { ...settings, delivery: null }
    harness.clock.set(wednesdayEvening)
    await run('send-payout-batches', fileChannel({ db: harness.db, now: harness.clock.now, settings: byHand }))
    const { id: batchId } = await batch(['approved'])
    const now = harness.clock.now()
    const exported = harness.inTx(tx => markExported(tx, { rail: byHand, batchId, now }))
    expect(await exported).toBeDefined()
    expect((await rail.collect(null, 100, AbortSignal.timeout(60_000))).reports).toHaveLength(1)
    const [open] = await list(harness.db, { state: 'open', take: 1 })
    const decision = { decision: 'ignore', exceptionId: open?.id ?? '', person: 'Ada', note: 'Rent', now } as const
    await harness.inTx(tx => closeException(tx, decision))
    const other = { ...settings, name: `${settings.name}-other` }
    expect(await importLines(foreign(1, 'M1'), { of: other })).toMatchObject({ result: 'imported' })

    expect(await listBegun(harness.db, settings.name)).toMatchObject([{ applied: 0 }])
    expect(await free()).toBe(false)
  })
  expect(isHeld).toBe(true)
  expect(await waiting).toMatchObject({ result: 'imported', records: 2 })
  expect(await free()).toBe(true)
})

test('files of one rail that are imported at once are applied one after the other, each record once', async () => {
  const [one, other] = [foreign(1_050, 'M1'), foreign(1_050, 'M2')]
  const audited: string[] = []
  const record: RecordImport = async (_, { sha256 }) => void audited.push(sha256)
  const all = await Promise.all([one, other, one].map(lines => importLines(lines, { record })))
  expect(all.every(({ result }) => result === 'imported' || result === 'repeated')).toBe(true)
  expect(audited).toHaveLength(2)
  expect(await counts()).toMatchObject({ records: 2_100, exceptions: 2_100, staged: 0 })
})

test.each([
  ['the same file, imported again', (lines: string[], record: RecordImport) => importLines(lines, { record })],
  ['the worker', () => run('read-bank-files')],
])('an interrupted import continues with %s, and is audited once', async (_, goOn) => {
  const { payments } = await sent(1_100)
  const lines = ['head;M1', ...payments.map(({ reference }) => `paid;${reference};5000EUR`)]
  const audited: string[] = []
  const record: RecordImport = async (_tx, { fileId }) => void audited.push(fileId)
  await harness.inTx(async tx => {
    // The second chunk waits for this payment, longer than it may.
    const { partnerId, reference } = payments[1_050] ?? {}
    await sql`select from payouts where partner_id = ${partnerId} and reference = ${reference} for update`.execute(tx)
    await expect(importLines(lines, { record })).rejects.toThrow(/lock timeout/)
  })
  const [begun] = await listBegun(harness.db, settings.name)
  expect(begun).toMatchObject({ status: 'importing', records: 1_100, applied: 1_000 })
  expect(await counts()).toMatchObject({ records: 1_000, outcomes: 1_000, staged: 100 })
  expect(await batch()).toMatchObject({ status: 'sent' })

  await goOn(lines, record)
  expect(await listBegun(harness.db, settings.name)).toEqual([])
  expect(await counts()).toEqual({ records: 1_100, exceptions: 0, staged: 0, outcomes: 1_100 })
  expect(await batch()).toMatchObject({ status: 'settled' })
  expect(audited).toEqual([begun?.fileId])
  expect(await importLines(lines, { record })).toMatchObject({ result: 'repeated', records: 1_100 })
})

test('a large batch that is rejected in one record is given back in parts, and reported once', async () => {
  const { messageId } = await sent(1_100)
  await importLines(['head;M1', `batch;${messageId};rejected;FF01`])
  expect(await counts()).toEqual({ records: 1_101, exceptions: 0, staged: 0, outcomes: 1_100 })
  expect(await batch()).toMatchObject({ status: 'rejected' })
  await importLines(['head;M1', `batch;${messageId};rejected;FF01`, ''])
  expect(await counts()).toMatchObject({ records: 1_101, outcomes: 1_100 })
})

test('a large batch that is debited as a whole is paid in parts, also by the next run of the sender', async () => {
  const { messageId } = await sent(1_100)
  const { controlTotal } = await batch()
  const others = await harness.db
    .selectFrom('payouts')
    .select(['partnerId', 'reference'])
    .where('rail', '=', settings.name)
    .orderBy('partnerId')
    .orderBy('reference')
    .execute()
  const lines = ['head;M1', `entry;-${controlTotal}EUR;${messageId};D1`]
  await harness.inTx(async tx => {
    // The second part waits for this payment, longer than it may.
    const { partnerId, reference } = others[1_050] ?? {}
    await sql`select from payouts where partner_id = ${partnerId} and reference = ${reference} for update`.execute(tx)
    await expect(importLines(lines)).rejects.toThrow(/lock timeout/)
  })
  expect(await counts()).toMatchObject({ outcomes: 1_000 })
  await run('send-payout-batches')
  expect(await counts()).toMatchObject({ records: 1_101, outcomes: 1_100 })
  expect(await batch()).toMatchObject({ status: 'settled' })
  const { reports } = await rail.collect(null, 5_000, AbortSignal.timeout(60_000))
  expect(new Set(reports.map(({ reference }) => reference)).size).toBe(1_100)
})

test('thousands of entries with one bank reference stay separate, and are not slow', async () => {
  const alike = (message: string) => [
    `head;${message}`,
    ...Array.from({ length: 3_000 }, (_, number) => `entry;999EUR;MEMBERSHIP ${number};SAME`),
  ]
  await importLines(alike('M1'))
  expect(await counts()).toMatchObject({ records: 3_000, exceptions: 3_000 })
  // The statement repeats the notice.
  await importLines(alike('M2'))
  expect(await counts()).toMatchObject({ records: 6_000, exceptions: 3_000 })
})
