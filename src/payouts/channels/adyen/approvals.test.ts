import pino from 'pino'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { refusal } from '../../../../test/adyen/service.ts'
import { setUpAdyen } from '../../../../test/adyen/set-up.ts'
import { closeException } from '../../../../test/payouts/two-person-decisions.ts'
import type { TaskName } from '../../../worker/task.ts'
import * as approvals from '../../books/approvals.ts'
import * as batches from '../../books/batches.ts'
import * as railHolds from '../../books/rail-holds.ts'
import { remove, setHeld } from '../../books/unsent-batches.ts'

// 11:00 in Berlin, on a Tuesday.
const tuesday = new Date('2026-03-10T10:00:00.000Z')
// Minor units. Below, net amounts are in these, too.
const automatic = { paymentMax: 5_000, batchMax: 8_000, dayMax: 9_000 }

const log = pino({ level: 'silent' })
let setUp: Awaited<ReturnType<typeof setUpAdyen>>
beforeAll(async () => {
  setUp = await setUpAdyen({ approval: { automatic } })
})
afterAll(() => setUp.stop())

let day = 0
beforeEach(() => {
  // Each test has another day, and so a new limit.
  setUp.harness.clock.set(new Date(tuesday.getTime() + day * 10 * 86_400_000))
  day += 1
})
afterEach(async () => {
  setUp.service.recover()
  const { ownerDb } = setUp.harness
  const dueAt = new Date('2030-01-01T00:00:00.000Z')
  await ownerDb.updateTable('withdrawals').set({ dueAt }).where('status', 'in', ['held', 'submitted']).execute()
  await ownerDb
    .updateTable('payoutBatches')
    .set({ held: true })
    .where('status', 'in', ['building', 'approved'])
    .execute()
  await ownerDb.deleteFrom('payoutExceptions').execute()
})

const run = (task: TaskName, rail = setUp.rail) => setUp.harness.runTask(task, { channels: [rail], log })

async function submit(...nets: number[]): Promise<string[]> {
  const ids: string[] = []
  for (const net of nets) ids.push((await setUp.harness.addWithdrawal({ currency: 'EUR', net })).id)
  setUp.harness.clock.advance({ seconds: 30 })
  await run('submit-withdrawals')
  return ids
}

const referenceOf = async (id: string): Promise<string> => (await setUp.harness.getWithdrawal(id)).paymentReference
const statusOf = async (id: string) => (await setUp.harness.getWithdrawal(id)).status
const isRequested = async (id: string) => setUp.service.transferOf(await referenceOf(id)) !== undefined

async function batchOf(id: string): Promise<batches.Batch> {
  const { db } = setUp.harness
  const { batchId } = await db
    .selectFrom('payouts')
    .select('batchId')
    .where('withdrawalId', '=', id)
    .executeTakeFirstOrThrow()
  return await batches.get(db, batchId ?? '')
}

const decide = <T>(work: (tx: Parameters<typeof setHeld>[0], now: Date) => Promise<T>) =>
  setUp.harness.inTx(tx => work(tx, setUp.harness.clock.now()))

/** What the worker does within a minute. */
async function minute(): Promise<void> {
  setUp.harness.clock.advance({ minutes: 1 })
  await run('send-payout-batches')
  await run('ask-about-withdrawals')
}

async function settle(): Promise<void> {
  await setUp.service.settle()
  await run('read-rail-reports')
}

test('a payment above the limit waits for two people, and keeps no other back', async () => {
  const [small = '', large = ''] = await submit(4_000, 5_001)
  expect([await isRequested(small), await isRequested(large)]).toEqual([true, false])
  const { id: batchId, ...waiting } = await batchOf(large)
  expect(waiting).toMatchObject({ status: 'building', paymentCount: 1, controlTotal: 5_001n, rail: 'adyen' })
  expect(await decide((tx, now) => approvals.approve(tx, { batchId, person: 'Ada', now }))).toMatchObject({
    approvalCount: 1,
  })
  await minute()
  setUp.harness.clock.advance({ minutes: 61 })
  await minute()
  expect(await isRequested(large)).toBe(false)
  expect(await decide((tx, now) => approvals.approve(tx, { batchId, person: 'Grace', now }))).toMatchObject({
    approvalCount: 2,
  })
  await minute()
  expect(await isRequested(large)).toBe(true)
  await settle()
  await run('send-payout-batches')
  expect([await statusOf(small), await statusOf(large)]).toEqual(['paid', 'paid'])
  expect([(await batchOf(small)).status, (await batchOf(large)).status]).toEqual(['settled', 'settled'])
  expect(await setUp.harness.disagreements()).toEqual([])
})

test('payments above the limit of a batch wait together, and those above the limit of a day until the next one', async () => {
  const together = await submit(4_001, 4_000)
  expect(await Promise.all(together.map(isRequested))).toEqual([false, false])
  expect((await batchOf(together[0] ?? '')).id).toBe((await batchOf(together[1] ?? '')).id)
  const [first = ''] = await submit(5_000)
  const [second = ''] = await submit(4_001)
  expect([await isRequested(first), await isRequested(second)]).toEqual([true, false])
  setUp.harness.clock.advance({ days: 1 })
  await minute()
  expect(await isRequested(second)).toBe(true)
})

test('a payment that waits can be held, released and taken out; one that was requested cannot', async () => {
  const [held = '', removed = ''] = await submit(6_000, 7_000)
  const { id: batchId } = await batchOf(held)
  for (const person of ['Ada', 'Grace']) await decide((tx, now) => approvals.approve(tx, { batchId, person, now }))
  await decide(tx => setHeld(tx, { batchId, held: true }))
  await minute()
  setUp.harness.clock.advance({ minutes: 61 })
  await minute()
  expect(await isRequested(held)).toBe(false)
  await decide(tx => setHeld(tx, { batchId, held: false }))
  await minute()
  expect(await isRequested(held)).toBe(true)
  const take = (payment: string) => decide((tx, now) => remove(tx, { payment, reason: 'Stopped', now }))
  await expect(take(held)).rejects.toThrow('sent')
  await take(removed)
  await minute()
  await run('read-rail-reports')
  expect([await statusOf(removed), await isRequested(removed)]).toEqual(['failed', false])
  expect((await batchOf(removed)).status).toBe('cancelled')
})

describe('while the rail is held', () => {
  const hold = () => decide((tx, now) => railHolds.hold(tx, { rail: 'adyen', person: 'Ada', now }))
  const release = () => decide((tx, now) => railHolds.release(tx, { rail: 'adyen', person: 'Ada', now }))
  afterEach(release)

  test('nothing is requested, and everything once it is released', async () => {
    expect([await hold(), await hold()]).toEqual([true, false])
    const [id = ''] = await submit(4_000)
    await minute()
    setUp.harness.clock.advance({ minutes: 61 })
    await minute()
    expect(await isRequested(id)).toBe(false)
    expect([await release(), await release()]).toEqual([true, false])
    await minute()
    expect(await isRequested(id)).toBe(true)
  })

  test('nothing is requested again, so that a payment without an answer can be given back after a look-up', async () => {
    const { service, harness } = setUp
    service.fail({ status: 202, body: { hello: 'world' }, isOdd: true })
    const [id = ''] = await submit(4_000)
    await hold()
    const { id: exceptionId = '' } =
      (await harness.db.selectFrom('payoutExceptions').select('id').executeTakeFirst()) ?? {}
    const giveBack = () =>
      decide((tx, now) => closeException(tx, { exceptionId, person: 'Ada', note: 'test', now, decision: 'give_back' }))
    await expect(giveBack()).rejects.toThrow(/may have been accepted.* It cannot ask unless adyen is in MIDMONTH_RAILS/)
    harness.clock.advance({ minutes: 61 })
    service.fail('none', { status: 422, body: refusal(422, '30_112') })
    await run('ask-about-withdrawals')
    await giveBack()
    await run('read-rail-reports')
    expect([await statusOf(id), await isRequested(id)]).toEqual(['failed', false])
  })
})

test('without limits, every payment waits for two people', async () => {
  const { adyenChannel } = await import('./channel.ts')
  const { db, clock } = setUp.harness
  const rail = adyenChannel({ db, now: clock.now, settings: { ...setUp.settings, automatic: null } })
  const { id } = await setUp.harness.addWithdrawal({ currency: 'EUR', net: 4_000 })
  clock.advance({ seconds: 30 })
  await run('submit-withdrawals', rail)
  await run('send-payout-batches', rail)
  expect(await isRequested(id)).toBe(false)
  expect((await batchOf(id)).status).toBe('building')
})
