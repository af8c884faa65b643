import { expect, test } from 'vitest'
import { startHarness } from '../../test/harness.ts'
import { sql } from '../database/database.ts'
import {
  canTransition,
  expectedAt,
  nextPollAt,
  returnsFunds,
  transfersOnEntering,
  transitionsFor,
  type WithdrawalStatus,
} from './lifecycle.ts'

const statuses: WithdrawalStatus[] = ['held', 'submitted', 'paid', 'failed', 'returned', 'cancelled']
const pairs = statuses.flatMap(from => statuses.map(to => ({ from, to })))

test('the edges are exactly those that the database lets through, and its trigger refuses every other', async () => {
  const { ownerDb: db, call, addMember, stop } = await startHarness()
  const memberId = await addMember({ available: 20_000 })
  const intent = await call('POST', '/v1/pay/withdrawals/intent', {
    body: { memberId, amount: { amount: 5_000, currency: 'GBP' } },
  })
  const { withdrawalIntentId } = intent.body
  await call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId } })
  const listed = await db
    .selectFrom('stateEdges')
    .selectAll()
    .where('entity', '=', 'withdrawals')
    .where('fromState', '<>', 'new')
    .execute()
  expect(listed).toHaveLength(5)
  const dueAt = (status: WithdrawalStatus) => (status === 'held' || status === 'submitted' ? new Date(0) : null)
  for (const { from, to } of pairs.filter(({ from, to }) => from !== to)) {
    expect(canTransition(from, to)).toBe(listed.some(edge => edge.fromState === from && edge.toState === to))
    const taken = db.transaction().execute(async tx => {
      // Only to get there: edges that do not exist lead to most of the states.
      await sql`alter table withdrawals disable trigger withdrawals_edges`.execute(tx)
      await tx
        .updateTable('withdrawals')
        .set({ status: from, dueAt: dueAt(from) })
        .execute()
      await sql`alter table withdrawals enable trigger withdrawals_edges`.execute(tx)
      await tx
        .updateTable('withdrawals')
        .set({ status: to, dueAt: dueAt(to) })
        .execute()
    })
    if (canTransition(from, to)) await expect(taken).resolves.toBeUndefined()
    else await expect(taken).rejects.toMatchObject({ constraint: 'only_listed_edges' })
  }
  await stop()
})

test('what a bank says leads over listed edges only, and once it is known it changes nothing', () => {
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
] as const)('%s, and the bank says %s: %j', (status, outcome, steps) => {
  expect(transitionsFor(status, outcome)).toEqual(steps)
})

const booked = { memberId: 'mem_a', currency: 'GBP' as const, netAmount: 4_900n, fee: 100n, employerFee: 0n }
const book = (to: WithdrawalStatus, withdrawal = booked) =>
  transfersOnEntering(to, withdrawal, 'pc_a').map(({ debit, credit, amount }) => `${debit} > ${credit} ${amount}`)

test('each edge has its transfers', () => {
  expect(book('submitted')).toEqual([])
  expect(book('paid')).toEqual(['payouts_pending > float 4900'])
  const back = ['payouts_pending > member_available 4900', 'fees > member_available 100']
  expect(book('failed')).toEqual(back)
  expect(book('cancelled')).toEqual(back)
  expect(book('returned')).toEqual(['float > member_available 4900', 'fees > member_available 100'])
  const employerPays = { ...booked, netAmount: 5_000n, fee: 0n, employerFee: 50n }
  expect(book('failed', employerPays)).toEqual(['payouts_pending > member_available 5000', 'fees > partner_fees 50'])
  expect(book('returned', employerPays)).toEqual(['float > member_available 5000', 'fees > partner_fees 50'])
  expect(statuses.filter(returnsFunds)).toEqual(['failed', 'returned', 'cancelled'])
})

test('the bank is asked ever less often, at least hourly, and never before a call has surely ended', () => {
  const now = new Date('2026-03-10T09:00:00Z')
  const waits = (random: number) =>
    Array.from(
      { length: 30 },
      (_, attempts) => (nextPollAt({ attempts, now, random }).getTime() - now.getTime()) / 60_000,
    )
  expect(waits(0).slice(0, 7)).toEqual([2, 4, 8, 16, 32, 60, 60])
  expect(waits(1).slice(0, 7)).toEqual([1, 2, 4, 8, 16, 30, 30])
  expect(Math.max(...waits(0))).toBe(60)
  expect(Math.min(...waits(1))).toBe(1)
})

test('money is expected at the end of the hold on a sandbox, and is not promised where no bank says when it pays', () => {
  const dueAt = new Date('2026-03-10T09:00:30Z')
  for (const status of statuses) {
    expect(expectedAt({ status, dueAt }, { mode: 'sandbox' })).toEqual(status === 'held' ? dueAt : null)
    expect(expectedAt({ status, dueAt }, { mode: 'live' })).toBeNull()
  }
})
