import { expect, test } from 'vitest'
import { startHarness } from '../../test/harness/harness.ts'
import { sql } from '../database/database.ts'
import {
  canTransition,
  deductedStatuses,
  expectedAt,
  returnsFunds,
  statuses,
  transitionsFor,
  type WithdrawalStatus,
} from './lifecycle.ts'

const pairs = statuses.flatMap(from => statuses.map(to => ({ from, to })))

test('the database allows the listed transitions, and its trigger refuses every other', async () => {
  const { ownerDb: db, call, addMember, stop } = await startHarness()
  const memberId = await addMember({ available: 20_000 })
  const intent = await call('POST', '/v1/pay/withdrawals/intent', {
    body: { memberId, amount: { amount: 5_000, currency: 'GBP' } },
  })
  const { withdrawalIntentId } = intent.body
  await call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId } })
  const dueAt = (status: WithdrawalStatus) => (status === 'held' || status === 'submitted' ? new Date(0) : null)
  for (const { from, to } of pairs.filter(({ from, to }) => from !== to)) {
    const taken = db.transaction().execute(async tx => {
      // Disabled only to set the first state, because most states cannot be reached in one transition.
      for (const trigger of ['withdrawals_transitions', 'withdrawals_recoveries'])
        await sql`alter table withdrawals disable trigger ${sql.ref(trigger)}`.execute(tx)
      await tx
        .updateTable('withdrawals')
        .set({ status: from, dueAt: dueAt(from) })
        .execute()
      for (const trigger of ['withdrawals_transitions', 'withdrawals_recoveries'])
        await sql`alter table withdrawals enable trigger ${sql.ref(trigger)}`.execute(tx)
      await tx
        .updateTable('withdrawals')
        .set({ status: to, dueAt: dueAt(to) })
        .execute()
    })
    // Only an operator's decision makes a refunded withdrawal paid.
    if (to === 'paid' && returnsFunds(from) && canTransition(from, to))
      await expect(taken).rejects.toMatchObject({ constraint: 'recovered_by_a_decision' })
    else if (canTransition(from, to)) await expect(taken).resolves.toBeUndefined()
    else await expect(taken).rejects.toMatchObject({ constraint: 'only_listed_transitions' })
  }
  await stop()
})

test('bank reports cause only listed transitions, and repeated reports change nothing', () => {
  for (const from of statuses) {
    for (const outcome of ['paid', 'failed', 'returned'] as const) {
      const steps = transitionsFor(from, outcome) ?? []
      for (const [index, to] of steps.entries()) expect(canTransition(steps[index - 1] ?? from, to)).toBe(true)
      const arrived = steps.at(-1)
      if (arrived !== undefined) {
        expect(arrived).toBe(outcome)
        expect(transitionsFor(arrived, outcome)).toEqual([])
      }
    }
  }
})

test.each([
  ['submitted', 'paid', ['paid']],
  ['submitted', 'failed', ['failed']],
  ['submitted', 'returned', ['paid', 'returned']],
  ['paid', 'paid', []],
  ['paid', 'failed', null],
  ['paid', 'returned', ['returned']],
  ['failed', 'failed', []],
  ['failed', 'paid', null],
  ['failed', 'returned', null],
  ['returned', 'returned', []],
  ['returned', 'paid', []],
  ['returned', 'failed', null],
  ['held', 'paid', null],
  ['held', 'failed', null],
  ['held', 'returned', null],
  ['cancelled', 'paid', null],
  ['cancelled', 'failed', null],
  ['cancelled', 'returned', null],
] as const)('%s, and the bank reports %s: %j', (status, outcome, steps) => {
  expect(transitionsFor(status, outcome)).toEqual(steps)
})

test('the money returns to the member when a withdrawal fails, is returned or is cancelled', () => {
  expect(statuses.filter(returnsFunds)).toEqual(['failed', 'returned', 'cancelled'])
  expect(statuses.filter(status => !returnsFunds(status))).toEqual(deductedStatuses)
})

test('a sandbox expects the money at the end of the hold; without an estimate from the bank, no time is promised', () => {
  const dueAt = new Date('2026-03-10T09:00:30Z')
  for (const status of statuses) {
    const withdrawal = { status, dueAt, expectedAt: null }
    expect(expectedAt(withdrawal, { isSimulated: true })).toEqual(status === 'held' ? dueAt : null)
    expect(expectedAt(withdrawal, { isSimulated: false })).toBeNull()
  }
})

test('a rail with a calendar says when the money is expected, until it is known that it will not arrive', () => {
  const byRail = new Date('2026-03-11T22:59:59.999Z')
  for (const status of statuses) {
    const said = expectedAt({ status, dueAt: null, expectedAt: byRail }, { isSimulated: false })
    expect(said).toEqual(status === 'submitted' || status === 'paid' ? byRail : null)
  }
})
