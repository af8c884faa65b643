import { createHash } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sepaFormat } from '../../src/payouts/formats/sepa/format.ts'
import { euroRail, FileBank, ownIban } from '../banks/file-bank.ts'
import { accountReport, type Entry, readCreditTransfer, transaction } from '../banks/iso20022.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { euAccount } from '../harness/samples.ts'
import { audit, type Findings } from './auditor.ts'
import type { BankBooks } from './bank.ts'

// Proves that the auditor of the crash test detects each fault it exists for. The faults are planted by hand, in the bank's
// records or in the database.

const bank = new FileBank()
let harness: Harness
let client: pg.Client
let books: BankBooks
let before: Findings

beforeAll(async () => {
  const rail = euroRail({ format: sepaFormat(), delivery: async () => bank })
  harness = await startHarness({ bankOf: () => 'connected', rails: [rail] })
  const { clock, host, superuser, database } = harness
  client = new pg.Client({ host, user: superuser, database })
  await client.connect()
  for (const [index, net] of [5_000, 6_000, 7_000].entries()) {
    await harness.addWithdrawal({ currency: 'EUR', available: 20_000 + index, net })
  }
  await harness.sendBatches({ hours: 6 })
  books = { files: [], orders: [], lies: [], refused: [], halves: [], answers: ['booked.xml', 'wrong.xml'] }
  for (const [name, text] of bank.outbox) {
    const { messageId, orders } = readCreditTransfer(text, name)
    books.files.push({ name, messageId, sha256: createHash('sha256').update(text).digest('hex') })
    books.orders.push(...orders.map(order => ({ ...order, file: name, outcome: 'paid' as const })))
  }
  const entry = ({ reference, amount }: { reference: string; amount: bigint }, index: number): Entry => ({
    ...{ bank: `E${index}`, amount, direction: 'DBIT', bookedOn: '2026-03-10', details: transaction({ reference }) },
  })
  const [first] = books.orders
  if (first === undefined) throw new Error('The bank has no orders')
  const report = (id: string, entries: Entry[]) =>
    accountReport({ id, at: clock.now() }, { kind: 'camt.054', iban: ownIban, entries })
  bank.inbox.set('booked.xml', report('M1', books.orders.map(entry)))
  bank.inbox.set('wrong.xml', report('M2', [entry({ ...first, amount: first.amount + 1n }, 9)]))
  books.lies.push({ kind: 'amount', reference: first.reference })
  await harness.runTask('read-bank-files')
  await harness.runTask('read-rail-reports')
  before = await findings(books)
})
afterAll(async () => {
  await client.end()
  await harness.stop()
})

async function findings(of: BankBooks): Promise<Findings> {
  return await audit(harness.settings.DATABASE_URL, { log: [], accepted: new Set(), books: of })
}

/** The auditor's new findings, without ids. */
async function found(of: BankBooks): Promise<string[]> {
  const after = await findings(of)
  return Object.entries(after).flatMap(([kind, all]) =>
    all
      .filter(each => !before[kind as keyof Findings].includes(each))
      .map(
        each =>
          `${kind}: ${each.replaceAll(/MMB\w+\.xml|MM[A-Z2-7]{14}|\b[a-z]{1,4}_[0-9a-z]{20,}|[0-9a-f]{64}/g, '…')}`,
      ),
  )
}

test('the auditor finds nothing wrong with payments that were made and answered once', () => {
  const { ghost, books, ...others } = before
  // The clients' log is empty, and no cycle has ended.
  expect(ghost.length).toBeGreaterThan(0)
  expect(books.filter(each => !each.endsWith('no cycle has closed'))).toEqual([])
  expect(others).toEqual({ lost: [], duplicated: [], undelivered: [], misread: [] })
})

const last = (all: BankBooks['orders']) => all.slice(-1)

test.each<[string, (books: BankBooks) => Partial<BankBooks>, string[]]>([
  [
    'a file that was sent twice',
    ({ files, orders }) => ({ files: [...files, ...files], orders: [...orders, ...orders] }),
    [
      ...Array(3).fill('duplicated: payment … was executed 2 times'),
      ...Array(3).fill('misread: payment … is in 2 files: …, …'),
      'misread: batch … is settled, and in 2 files',
    ],
  ],
  [
    'a payment that is missing from its file',
    ({ orders }) => ({ orders: orders.slice(0, -1) }),
    [
      'lost: withdrawal … is paid, but at the bank it is held or cancelled or submitted',
      'misread: payment … is in 0 files: ',
      'misread: batch … has 3 payments and 18000, its file 2 and ',
    ],
  ],
  [
    'a payment with another amount',
    ({ orders }) => ({
      orders: orders.map((order, at) => (at === 0 ? { ...order, amount: order.amount + 1n } : order)),
    }),
    ['ghost: the bank has ', 'misread: batch … has 3 payments and 18000, its file 3 and 18001'],
  ],
  [
    'a payment to another account',
    ({ orders }) => ({ orders: [...orders.slice(0, -1), ...last(orders).map(order => ({ ...order, iban: ownIban }))] }),
    [`misread: payment … is to ${ownIban}, but the member's account is ${euAccount.iban}`],
  ],
  [
    'a batch that was never delivered',
    () => ({ files: [], orders: [] }),
    [
      ...Array(3).fill('lost: withdrawal … is paid, but at the bank it is held or cancelled or submitted'),
      ...Array(3).fill('misread: payment … is in 0 files: '),
      'misread: batch … is settled, and in 0 files',
    ],
  ],
  [
    'a file whose bytes differ from the recorded checksum',
    ({ files }) => ({ files: files.map(file => ({ ...file, sha256: '0'.repeat(64) })) }),
    ['misread: batch … has the checksum …, its file …'],
  ],
  [
    'a file without a batch',
    ({ files }) => ({ files: [...files, { name: 'MMBX.xml', messageId: 'MMBX', sha256: '' }] }),
    ['misread: the file … belongs to no batch'],
  ],
  [
    'an answer that was swallowed',
    ({ lies }) => ({ lies: [...lies, { kind: 'unmatched', reference: 'MMAAAAAAAAAAAAAA' }] }),
    ['misread: exceptions of kind unmatched about … is 0, recomputed 1'],
  ],
  [
    'a truncated file that was booked',
    () => ({ halves: ['booked.xml'] }),
    ['misread: the file booked.xml was imported, but'],
  ],
])('the auditor finds %s', async (_, change, wanted) => {
  const all = (await found({ ...books, ...change(books) })).sort()
  expect(all).toHaveLength(wanted.length)
  for (const [index, each] of wanted.toSorted().entries()) expect(all[index]).toContain(each)
})

test.each<[string, string, string]>([
  [
    'an answer that was booked twice',
    `insert into ledger_transfers select (jsonb_populate_record(t, jsonb_build_object('id', overlay(id placing '7' from 6 for 1)))).*
       from ledger_transfers t where reason = 'withdrawal.paid'`,
    'books: withdrawal … is paid and booked',
  ],
  [
    'an exception that was swallowed',
    'delete from payout_exceptions',
    'misread: exceptions of kind amount about … is 0',
  ],
  [
    'an exception that was opened twice',
    `insert into payout_exceptions
     select (jsonb_populate_record(e, jsonb_build_object('id', overlay(id placing '7' from 6 for 1), 'fingerprint', 'again'))).* from payout_exceptions e`,
    'misread: exceptions of kind amount about … is 2',
  ],
  [
    'a batch that never ended',
    `update payout_batches set status = 'sent'`,
    'misread: batch … is sent, though all of it',
  ],
  [
    'a complete file that was refused',
    `update bank_files set status = 'rejected'`,
    'misread: the file booked.xml was refused',
  ],
  [
    'a withdrawal that did not follow its payment',
    `update withdrawals set status = 'failed'`,
    'lost: withdrawal … is failed, but at the bank it is paid',
  ],
])('the auditor finds %s', async (_, change, wanted) => {
  // The database refuses most of these changes. The auditor has a separate connection, so each change is committed, then undone.
  const tables = ['ledger_transfers', 'payout_exceptions', 'payout_batches', 'bank_files', 'withdrawals']
  const each = (statement: (table: string) => string) => tables.map(statement).join(' ')
  await client.query(
    `set session_replication_role = replica; ${each(table => `create table kept_${table} as table ${table};`)}`,
  )
  try {
    await client.query(change)
    expect(await found(books)).toContainEqual(expect.stringContaining(wanted))
  } finally {
    await client.query(
      each(table => `delete from ${table}; insert into ${table} table kept_${table}; drop table kept_${table};`),
    )
  }
  expect(await found(books)).toEqual([])
})
