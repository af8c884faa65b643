import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { refusal } from '../../../../test/adyen/service.ts'
import { setUpAdyen } from '../../../../test/adyen/set-up.ts'
import { closeException } from '../../../../test/payouts/two-person-decisions.ts'
import type { TaskName } from '../../../worker/task.ts'
import * as exceptions from '../../books/exceptions.ts'
import { recordRestore } from '../../books/restores.ts'
import { referenceOf } from '../../payments/reference.ts'

// Adyen has payments that were requested after the backup, and the restored books do not know that.

const account = {
  accountHolder: { fullName: 'Mia Schulz' },
  accountIdentification: { type: 'iban', iban: 'DE89370400440532013000' },
}

let setUp: Awaited<ReturnType<typeof setUpAdyen>>
let operatorKey: string
beforeAll(async () => {
  setUp = await setUpAdyen()
  operatorKey = (await setUp.harness.addOperator()).secret
})
afterAll(() => setUp.stop())
beforeEach(async () => {
  await compared()
  // No test sees the payments or exceptions of another.
  const { ownerDb } = setUp.harness
  const dueAt = new Date('2030-01-01T00:00:00.000Z')
  await ownerDb.updateTable('withdrawals').set({ dueAt }).where('status', 'in', ['held', 'submitted']).execute()
  await ownerDb.deleteFrom('payoutExceptions').execute()
  setUp.service.recover()
})

const run = async (...tasks: TaskName[]) => {
  for (const task of tasks) await setUp.harness.runTask(task, { channels: [setUp.rail] })
}
/** Resumes payouts by the API that has the rail. */
const resume = async () => {
  const response = await fetch(`${setUp.address}/operator/v1/payouts/resume`, {
    method: 'POST',
    headers: { 'x-api-key': operatorKey, 'content-type': 'application/json' },
    body: JSON.stringify({ note: 'by the list' }),
  })
  return { status: response.status, text: await response.text() }
}
const openExceptions = async () => await exceptions.list(setUp.harness.db, { state: 'open', take: 100 })
const restored = async (recoveredUntil: Date | null) => {
  const { inTx, clock } = setUp.harness
  await inTx(tx => recordRestore(tx, { how: 'The database was restored', recoveredUntil, now: clock.now() }))
}
const statusOf = async (id: string) => (await setUp.harness.getWithdrawal(id)).status

const referenceFor = (id: string) => referenceOf({ partnerId: setUp.harness.partner.id, withdrawalId: id })

/** A withdrawal that the restored books know, but not that Adyen has its payment. */
async function madeBefore(steps: { status: string }[], { key }: { key?: string } = {}) {
  const { id } = await setUp.harness.addWithdrawal({ currency: 'EUR' })
  setUp.harness.clock.advance({ minutes: 1 })
  const reference = referenceFor(id)
  transfer(key ?? reference, { reference, steps })
  return { id, reference }
}

function transfer(key: string, { reference, steps }: { reference: string; steps: { status: string }[] }): void {
  const { service } = setUp
  const amount = { value: 5_000, currency: 'EUR' }
  const { balanceAccountId } = service
  service.addTransfer(key, { amount, balanceAccountId, counterparty: { bankAccount: account }, reference }, steps)
}

const booked = [{ status: 'authorised' }, { status: 'booked' }]
const copiesOf = (reference: string) =>
  setUp.service.transfers().filter(({ info }) => info.reference === reference).length

/** Compares the banks without the operator's checks. */
const compared = async () => {
  const { pool, clock } = setUp.harness
  await pool.query(`update restores set compared_at = $1, compared_by = 'test' where compared_at is null`, [
    clock.now(),
  ])
}
/** Polls once more, after the longest back-off. */
async function pollAgain(): Promise<void> {
  setUp.harness.clock.advance({ minutes: 75 })
  await run('ask-about-withdrawals')
}
/** Lets the rail go on until a withdrawal is paid. */
async function paidAfterAll(id: string): Promise<void> {
  await pollAgain()
  await setUp.service.settle()
  await run('read-rail-reports')
  expect(await statusOf(id)).toBe('paid')
}

test('after a restore, what Adyen has made is listed at once and back to the backup, and keeps payouts stopped until it is decided', async () => {
  const { harness } = setUp
  await run('read-bank-files')
  const backup = harness.clock.now()
  const { id, reference } = await madeBefore(booked)
  const lost = 'MMAAAAAAAAAAAAAA'
  transfer(lost, { reference: lost, steps: [{ status: 'authorised' }] })
  harness.clock.advance({ days: 40 })
  await run('read-bank-files')
  harness.clock.advance({ minutes: 1 })
  await restored(backup)
  expect((await resume()).text).toContain('adyen has not listed its payments since the restore')

  const unsent = await harness.addWithdrawal({ currency: 'EUR' })
  harness.clock.advance({ minutes: 1 })
  await run('submit-withdrawals', 'read-bank-files', 'read-rail-reports')
  expect(await statusOf(id)).toBe('paid')
  expect(await statusOf(unsent.id)).toBe('submitted')
  expect(copiesOf(referenceFor(unsent.id))).toBe(0)
  const [unknown, ...others] = await openExceptions()
  expect([unknown, others]).toMatchObject([{ kind: 'unmatched', reference: lost }, []])
  expect((await resume()).text).toContain('1 payout exception since the restore is open')
  const decision = {
    decision: 'ignore',
    note: 'the pay is corrected',
    person: 'Ada',
    now: harness.clock.now(),
  } as const
  await harness.inTx(tx => closeException(tx, { exceptionId: unknown?.id ?? '', ...decision }))
  expect(await resume()).toMatchObject({ status: 200 })
  await paidAfterAll(unsent.id)
  expect(copiesOf(reference)).toBe(1)
})

test.each([
  { age: 'known', claimed: 'before' },
  { age: 'unknown', claimed: 'before' },
  { age: 'known', claimed: 'after' },
])(
  'an unlisted payment with an expired key is not made again: backup of $age age, claimed $claimed payouts are resumed',
  async ({ age, claimed }) => {
    const { clock } = setUp.harness
    const backup = clock.now()
    const { id, reference } = await madeBefore(booked, { key: `expired ${age} ${claimed}` })
    clock.advance({ minutes: 120 })
    await restored(age === 'known' ? backup : null)
    if (claimed === 'before') await run('submit-withdrawals')
    clock.advance({ days: 8 })
    await compared()
    clock.advance({ minutes: 1 })
    if (claimed === 'after') await run('submit-withdrawals')
    await paidAfterAll(id)
    expect(copiesOf(reference)).toBe(1)
    expect(await openExceptions()).toEqual([])
  },
)

test('a payment that a look-up does not find is requested with the key of before the backup', async () => {
  const { id } = await setUp.harness.addWithdrawal({ currency: 'EUR' })
  const reference = referenceFor(id)
  setUp.harness.clock.advance({ minutes: 1 })
  await restored(setUp.harness.clock.now())
  await run('submit-withdrawals')
  await compared()
  const before = setUp.service.exchanges.length
  await pollAgain()
  const [lookUp, request] = setUp.service.exchanges.slice(before)
  expect([lookUp, request]).toMatchObject([
    { method: 'GET', query: { reference } },
    { method: 'POST', headers: { 'idempotency-key': reference }, status: 202 },
  ])
  expect(copiesOf(reference)).toBe(1)
  expect(await statusOf(id)).toBe('submitted')
})

test('while Adyen does not answer whether it has a payment, the payment is not requested after a restore', async () => {
  const backup = setUp.harness.clock.now()
  const { id, reference } = await madeBefore(booked, { key: 'unanswered' })
  await restored(backup)
  await run('submit-withdrawals')
  await compared()
  setUp.service.fail('error-before', { status: 403, body: refusal(403, '10_003') })
  for (let poll = 0; poll < 2; poll++) await pollAgain()
  expect(await openExceptions()).toMatchObject([{ kind: 'blocked', reasonCode: '10_003' }])
  expect(copiesOf(reference)).toBe(1)
  await paidAfterAll(id)
  expect(copiesOf(reference)).toBe(1)
})
