import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness.ts'
import { sql, type Tx } from '../db.ts'
import * as float from '../float/float.ts'
import { floatSums, post } from './ledger.ts'
import { takeSnapshots } from './snapshots.ts'

let harness: Harness
let partnerId: string
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())
beforeEach(async () => {
  partnerId = (await harness.addPartner('Sums')).partner.id
})

const book = (tx: Tx, amount: bigint) =>
  post(tx, {
    ...{ partnerId, movementId: 'fm_test', reason: 'float.funded', now: harness.clock.now() },
    transfers: [{ debit: 'float', credit: 'funding', amount, currency: 'GBP' }],
  })
const bookNow = (amount: bigint) => harness.db.transaction().execute(tx => book(tx, amount))
const take = () => takeSnapshots(harness.db, { rowsMin: 1 })
const sum = async () => (await float.read(harness.db, partnerId)).find(({ currency }) => currency === 'GBP')?.float
const snapshot = async () =>
  await harness.db
    .selectFrom('ledgerSnapshots')
    .select(['floatBalance', 'pendingBalance', 'beforeTransaction'])
    .where('partnerId', '=', partnerId)
    .executeTakeFirst()

/** A transaction that has booked an amount and stays open until it is let go. */
async function openBooking(amount: bigint) {
  const booked = Promise.withResolvers<void>()
  const letGo = Promise.withResolvers<'commit' | 'rollback'>()
  const done = harness.db
    .transaction()
    .execute(async tx => {
      await book(tx, amount)
      booked.resolve()
      if ((await letGo.promise) === 'rollback') throw new Error('rolled back')
    })
    .catch(error => {
      if (error.message !== 'rolled back') throw error
    })
  await booked.promise
  return {
    async end(how: 'commit' | 'rollback') {
      letGo.resolve(how)
      await done
    },
  }
}

test('a snapshot leaves out everything since the oldest open transaction, and the sum misses nothing when that ends', async () => {
  await bookNow(1n)
  const committedLater = await openBooking(10n)
  const rolledBack = await openBooking(100n)
  await bookNow(1_000n)
  expect(await take()).toBe(1)
  expect(await snapshot()).toMatchObject({ floatBalance: 1n })
  expect(await sum()).toBe(1_001n)
  await committedLater.end('commit')
  expect(await sum()).toBe(1_011n)
  await rolledBack.end('rollback')
  await take()
  expect(await snapshot()).toMatchObject({ floatBalance: 1_011n })
  expect(await sum()).toBe(1_011n)
})

test('snapshots taken at any moment, several at once and beside bookings, never change what the sum is', async () => {
  const amounts = Array.from({ length: 60 }, (_, index) => 2n ** BigInt(index % 30))
  await Promise.all(amounts.flatMap((amount, index) => [bookNow(amount), ...(index % 5 === 0 ? [take()] : [])]))
  await Promise.all([take(), take(), take()])
  const total = amounts.reduce((all, amount) => all + amount, 0n)
  expect(await sum()).toBe(total)
  expect((await snapshot())?.floatBalance).toBe(total)
})

test('a sum over few rows gets no snapshot, and one without new rows no new one', async () => {
  await bookNow(5n)
  expect(await takeSnapshots(harness.db, { rowsMin: 2 })).toBe(0)
  await bookNow(6n)
  expect(await takeSnapshots(harness.db, { rowsMin: 2 })).toBe(1)
  expect(await takeSnapshots(harness.db, { rowsMin: 2 })).toBe(0)
  expect(await sum()).toBe(11n)
})

test('a sum reads the few rows since the snapshot by their index, however many there are before it', async () => {
  await harness.db.transaction().execute(tx =>
    post(tx, {
      ...{ partnerId, movementId: 'fm_test', reason: 'float.funded', now: harness.clock.now() },
      transfers: Array.from({ length: 20_000 }, () => ({
        ...{ debit: 'float', credit: 'funding', amount: 1n, currency: 'GBP' },
      })),
    }),
  )
  await take()
  await bookNow(1n)
  await sql`analyze ledger_transfers`.execute(harness.ownerDb)
  const query = floatSums({ partnerId: sql`${partnerId}`, currency: sql`'GBP'` })
  const { rows } = await sql<{ 'QUERY PLAN': string }>`explain (analyze, timing off, summary off) ${query}`.execute(
    harness.db,
  )
  const plan = rows.map(row => Object.values(row)[0]).join('\n')
  expect(plan).toMatch(/Scan (using|on) ledger_transfers_of_float .*actual rows=1(\.00)? /)
  expect(plan).not.toMatch(/Seq Scan on ledger_transfers/)
  expect(await sum()).toBe(20_001n)
})
