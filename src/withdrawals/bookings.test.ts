import fc from 'fast-check'
import { expect, test } from 'vitest'
import { postingRules } from '../verification/rules.ts'
import { transfersOnEntering, transfersOnRecovering } from './bookings.ts'
import { returnsFunds, statuses, type WithdrawalStatus } from './lifecycle.ts'

const booked = { memberId: 'mem_a', currency: 'GBP' as const, netAmount: 4_900n, fee: 100n, employerFee: 0n }
const employerPays = { ...booked, netAmount: 5_000n, fee: 0n, employerFee: 50n }
const book = (to: WithdrawalStatus, withdrawal = booked) =>
  transfersOnEntering(to, withdrawal, 'pc_a').map(({ debit, credit, amount }) => `${debit} > ${credit} ${amount}`)

test('each state posts its transfers', () => {
  expect(book('held')).toEqual(['member_available > payouts_pending 4900', 'member_available > fees 100'])
  expect(book('submitted')).toEqual([])
  expect(book('paid')).toEqual(['payouts_pending > float 4900'])
  const refund = ['payouts_pending > member_available 4900', 'fees > member_available 100']
  expect(book('failed')).toEqual(refund)
  expect(book('cancelled')).toEqual(refund)
  expect(book('returned')).toEqual(['float > member_available 4900', 'fees > member_available 100'])
  expect(book('held', employerPays)).toEqual(['member_available > payouts_pending 5000', 'partner_fees > fees 50'])
  expect(book('failed', employerPays)).toEqual(['payouts_pending > member_available 5000', 'fees > partner_fees 50'])
  expect(book('returned', employerPays)).toEqual(['float > member_available 5000', 'fees > partner_fees 50'])
})

const anyWithdrawal = fc
  .record({
    netAmount: fc.bigInt({ min: 1n, max: 12_000n }),
    wholeFee: fc.bigInt({ min: 0n, max: 300n }),
    isEmployers: fc.boolean(),
  })
  .map(({ netAmount, wholeFee, isEmployers }) => ({
    ...{ memberId: 'mem_a', currency: 'GBP' as const, netAmount },
    ...{ fee: isEmployers ? 0n : wholeFee, employerFee: isEmployers ? wholeFee : 0n },
  }))

/** Sums what the transfers of some states add to each account: credits less debits. */
function changes(withdrawal: typeof booked, entered: WithdrawalStatus[]): Record<string, bigint> {
  const sums: Record<string, bigint> = {}
  for (const { debit, credit, amount } of entered.flatMap(to => transfersOnEntering(to, withdrawal, 'pc_a'))) {
    sums[debit] = (sums[debit] ?? 0n) - amount
    sums[credit] = (sums[credit] ?? 0n) + amount
  }
  return sums
}

test('a completion takes exactly the gross amount from the member and owes exactly the net amount and the fees', () => {
  fc.assert(
    fc.property(anyWithdrawal, withdrawal => {
      const { netAmount, fee, employerFee } = withdrawal
      const {
        member_available = 0n,
        payouts_pending = 0n,
        fees = 0n,
        partner_fees = 0n,
      } = changes(withdrawal, ['held'])
      expect(member_available).toBe(-(netAmount + fee))
      expect(payouts_pending).toBe(netAmount)
      expect(fees).toBe(fee + employerFee)
      expect(partner_fees).toBe(-employerFee)
    }),
  )
})

test('however a withdrawal is refunded, its transfers add up to zero', () => {
  const ways: WithdrawalStatus[][] = [
    ['held', 'cancelled'],
    ['held', 'submitted', 'failed'],
    ['held', 'submitted', 'paid', 'returned'],
  ]
  expect(ways.map(way => way.at(-1)).sort()).toEqual(statuses.filter(returnsFunds).sort())
  fc.assert(
    fc.property(anyWithdrawal, fc.constantFrom(...ways), (withdrawal, way) => {
      expect(Object.values(changes(withdrawal, way)).filter(sum => sum !== 0n)).toEqual([])
    }),
  )
})

test('a recovery takes what is available first, net before fee, and the member owes the rest of net and fee', () => {
  fc.assert(
    fc.property(anyWithdrawal, fc.bigInt({ min: 0n, max: 15_000n }), (withdrawal, available) => {
      const gross = withdrawal.netAmount + withdrawal.fee
      const taken = available < gross ? available : gross
      const transfers = transfersOnRecovering(withdrawal, { taken, payCycleId: 'pc_a' })
      const sum = (names: { debit?: string; credit?: string }) =>
        transfers
          .filter(each =>
            Object.entries(names).every(([side, account]) => each[side as 'debit' | 'credit'] === account),
          )
          .reduce((total, { amount }) => total + amount, 0n)
      expect(sum({ debit: 'member_available' })).toBe(taken)
      expect(sum({ debit: 'member_owed' })).toBe(gross - taken)
      expect(sum({ credit: 'float' })).toBe(withdrawal.netAmount)
      expect(sum({ credit: 'fees' })).toBe(withdrawal.fee + withdrawal.employerFee)
      if (sum({ debit: 'member_owed', credit: 'float' }) > 0n)
        expect(sum({ debit: 'member_available', credit: 'fees' })).toBe(0n)
    }),
  )
})

test('the posting rules that verify checks are exactly the transfers of the states', () => {
  const entering = statuses.flatMap(status =>
    [booked, employerPays].flatMap(withdrawal =>
      transfersOnEntering(status, withdrawal, 'pc_a').map(transfer => ({ reason: status, ...transfer })),
    ),
  )
  const recovering = [booked, employerPays].flatMap(withdrawal =>
    [0n, withdrawal.netAmount + withdrawal.fee].flatMap(taken =>
      transfersOnRecovering(withdrawal, { taken, payCycleId: 'pc_a' }).map(transfer => ({
        reason: 'recovered',
        ...transfer,
      })),
    ),
  )
  const all = [...entering, ...recovering].map(({ reason, debit, credit }) => `withdrawal.${reason} ${debit} ${credit}`)
  const verified = postingRules.filter(([reason]) => reason.startsWith('withdrawal.')).map(rule => rule.join(' '))
  expect([...new Set(all)].sort()).toEqual(verified.sort())
})
