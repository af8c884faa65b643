import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { sql, type Tx } from '../database/database.ts'
import * as float from '../float/float.ts'
import { floatSums, floatsToFold, foldFloatChanges, post, sumFloatsAt } from './ledger.ts'

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
const bookNow = (amount: bigint) => harness.inTx(tx => book(tx, amount))
const fold = (countMax = 1_000) => harness.inTx(tx => foldFloatChanges(tx, { partnerId, currency: 'GBP', countMax }))
const sum = async () => (await float.read(harness.db, partnerId)).find(({ currency }) => currency === 'GBP')?.float
const total = async () =>
  await harness.db
    .selectFrom('ledgerFloatTotals')
    .select('floatBalance')
    .where('partnerId', '=', partnerId)
    .executeTakeFirst()

/** Opens a transaction that has booked an amount and stays open until `end` is called. */
async function openBooking(amount: bigint) {
  const booked = Promise.withResolvers<void>()
  const ending = Promise.withResolvers<'commit' | 'rollback'>()
  const done = harness
    .inTx(async tx => {
      await book(tx, amount)
      booked.resolve()
      if ((await ending.promise) === 'rollback') throw new Error('rolled back')
    })
    .catch(error => {
      if (error.message !== 'rolled back') throw error
    })
  await booked.promise
  return {
    async end(how: 'commit' | 'rollback') {
      ending.resolve(how)
      await done
    },
  }
}

test('folding skips uncommitted changes, and the sum is complete once they commit', async () => {
  await bookNow(1n)
  const committedLater = await openBooking(10n)
  const rolledBack = await openBooking(100n)
  await bookNow(1_000n)
  expect(await fold()).toBe(2)
  expect(await total()).toEqual({ floatBalance: 1_001n })
  expect(await sum()).toBe(1_001n)
  await committedLater.end('commit')
  expect(await sum()).toBe(1_011n)
  await rolledBack.end('rollback')
  expect(await fold()).toBe(1)
  expect(await total()).toEqual({ floatBalance: 1_011n })
  expect(await sum()).toBe(1_011n)
})

test('folding at any time, concurrently and alongside bookings, never changes the sum', async () => {
  const amounts = Array.from({ length: 60 }, (_, index) => 2n ** BigInt(index % 30))
  await Promise.all(amounts.flatMap((amount, index) => [bookNow(amount), ...(index % 5 === 0 ? [fold(7)] : [])]))
  const expected = amounts.reduce((all, amount) => all + amount, 0n)
  expect(await sum()).toBe(expected)
  await Promise.all([fold(), fold(), fold()])
  await fold()
  expect(await sum()).toBe(expected)
  expect(await total()).toEqual({ floatBalance: expected })
})

test('a float with few changes is not folded', async () => {
  await bookNow(5n)
  const due = async (countMin: number) => await floatsToFold(harness.db, { countMin })
  const mine = { partnerId, currency: 'GBP' }
  expect(await due(2)).not.toContainEqual(mine)
  await bookNow(6n)
  expect(await due(2)).toContainEqual(mine)
  await fold()
  expect(await due(1)).not.toContainEqual(mine)
  expect(await sum()).toBe(11n)
})

test('a movement of many transfers is one float change, so a sum reads few rows', async () => {
  await harness.inTx(tx =>
    post(tx, {
      ...{ partnerId, movementId: 'fm_test', reason: 'float.funded', now: harness.clock.now() },
      transfers: Array.from({ length: 20_000 }, () => ({
        ...{ debit: 'float', credit: 'funding', amount: 1n, currency: 'GBP' },
      })),
    }),
  )
  await bookNow(1n)
  const query = floatSums({ partnerId: sql`${partnerId}`, currency: sql`'GBP'` })
  const { rows } = await sql<{ 'QUERY PLAN': string }>`explain (analyze, timing off, summary off) ${query}`.execute(
    harness.db,
  )
  const plan = rows.map(row => Object.values(row)[0]).join('\n')
  expect(plan).toMatch(/Scan .*on ledger_float_changes unfolded .*actual rows=2(\.00)? /)
  expect(plan).not.toContain('ledger_transfers')
  expect(await sum()).toBe(20_001n)
})

test('floats as of many instants are the sums of all bookings before each instant, in the requested order', async () => {
  const other = (await harness.addPartner('Another')).partner.id
  const instants = Array.from({ length: 40 }, () => {
    const at = harness.clock.now()
    harness.clock.advance({ minutes: 1 })
    return at
  })
  const [first = new Date()] = instants
  for (const [index, now] of instants.entries()) {
    await harness.inTx(async tx => {
      for (const [of, amount] of Object.entries({ [partnerId]: 1n, [other]: 100n }))
        await post(tx, {
          ...{ partnerId: of, movementId: `fm_${index}`, reason: 'float.funded', now },
          transfers: [{ debit: 'float', credit: 'funding', amount, currency: 'GBP' }],
        })
    })
  }
  const asked = [harness.clock.now(), ...instants.toReversed(), first]
  const sums = async (only: string[], at = asked) =>
    await sumFloatsAt(harness.db, { partners: { only }, currency: 'GBP', instants: at })
  // A booking at an instant is not part of the sum as of that instant.
  const counts = [40n, ...instants.map((_, index) => 39n - BigInt(index)), 0n]
  expect(await sums([partnerId])).toEqual(counts)
  expect(await sums([partnerId, other])).toEqual(counts.map(count => count * 101n))
  expect(await sums([partnerId], [])).toEqual([])
})
