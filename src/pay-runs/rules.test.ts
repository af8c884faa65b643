import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Balance, balanceKey, type Line, transfersOf } from './rules.ts'

const payCycleId = 'pc_a'
const line = (amount: bigint, memberId = 'mem_a'): Line => ({ memberId, amount, currency: 'GBP' })
const key = balanceKey(line(1n))
const book = (lines: Line[], balance?: Balance) =>
  transfersOf(lines, { payCycleId, balances: new Map(balance === undefined ? [] : [[key, balance]]) }).map(
    ({ debit, credit, amount }) => `${debit} > ${credit} ${amount}`,
  )

test('pay becomes available', () => {
  expect(book([line(100n)])).toEqual(['earned_pay > member_available 100'])
})

test('pay first repays what the member owes from an earlier correction', () => {
  expect(book([line(100n)], { available: 0n, owed: 30n })).toEqual([
    'earned_pay > member_owed 30',
    'earned_pay > member_available 70',
  ])
  expect(book([line(20n)], { available: 0n, owed: 30n })).toEqual(['earned_pay > member_owed 20'])
})

test('a correction reduces the available balance, and the rest is owed', () => {
  expect(book([line(-40n)], { available: 100n, owed: 0n })).toEqual(['member_available > earned_pay 40'])
  expect(book([line(-140n)], { available: 100n, owed: 0n })).toEqual([
    'member_available > earned_pay 100',
    'member_owed > earned_pay 40',
  ])
  expect(book([line(-10n)])).toEqual(['member_owed > earned_pay 10'])
})

test('the lines of a member are booked in order, each on the balance after the previous one', () => {
  expect(book([line(100n), line(-150n), line(80n)])).toEqual([
    'earned_pay > member_available 100',
    'member_available > earned_pay 100',
    'member_owed > earned_pay 50',
    'earned_pay > member_owed 50',
    'earned_pay > member_available 30',
  ])
})

test('no balance falls below zero, and available minus owed changes by exactly the sum of the lines', () => {
  const lines = fc.array(
    fc.record({
      memberId: fc.constantFrom('mem_a', 'mem_b'),
      amount: fc.bigInt({ min: -200n, max: 200n }).filter(amount => amount !== 0n),
      currency: fc.constantFrom('GBP' as const, 'EUR' as const),
    }),
    { maxLength: 30 },
  )
  const start = fc.record({ available: fc.bigInt({ min: 0n, max: 300n }), owed: fc.bigInt({ min: 0n, max: 300n }) })
  fc.assert(
    fc.property(lines, start, (each, balance) => {
      const balances = new Map([[key, balance]])
      const running = new Map<string, Balance>([[key, { ...balance }]])
      for (const { debit, credit, amount, memberId = '', currency } of transfersOf(each, { payCycleId, balances })) {
        const at = balanceKey({ memberId, currency })
        const { available, owed } = running.get(at) ?? { available: 0n, owed: 0n }
        const next = {
          available:
            available + (credit === 'member_available' ? amount : 0n) - (debit === 'member_available' ? amount : 0n),
          owed: owed + (debit === 'member_owed' ? amount : 0n) - (credit === 'member_owed' ? amount : 0n),
        }
        expect(next.available >= 0n && next.owed >= 0n).toBe(true)
        running.set(at, next)
      }
      const sum = each
        .filter(({ memberId, currency }) => balanceKey({ memberId, currency }) === key)
        .reduce((total, { amount }) => total + amount, 0n)
      const end = running.get(key) ?? balance
      expect(end.available - end.owed).toBe(balance.available - balance.owed + sum)
    }),
  )
})
