import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Currency } from '../kernel/money.ts'
import { type Deduction, lineCheck, type SettlementLine, settle, type Taken, transfersOf } from './rules.ts'

const deduction = (memberId: string, amount: bigint, currency: Currency = 'GBP'): Deduction => ({
  memberId,
  amount,
  currency,
})
const took = (memberId: string, amount: bigint, currency: Currency = 'GBP', at = 0): Taken => ({
  memberId,
  amount,
  currency,
  at,
})
const only = (lines: SettlementLine[]) => {
  expect(lines).toHaveLength(1)
  const [line] = lines
  if (line === undefined) throw new Error('There is no line')
  return line
}

describe('comparing', () => {
  const compare = (deducted: bigint, taken: bigint | null, policy: 'carry' | 'write_off' = 'carry') => {
    const { outcome, carried, writtenOff } = only(
      settle(taken === null ? [] : [took('mem_a', taken)], { deductions: [deduction('mem_a', deducted)], policy }),
    )
    return [outcome, carried, writtenOff]
  }

  test.each<[string, bigint, bigint | null, [string, bigint, bigint]]>([
    ['exactly the deduction is matched', 100n, 100n, ['matched', 0n, 0n]],
    ['less is short, and carried', 100n, 60n, ['short', 40n, 0n]],
    ['nothing is short', 100n, 0n, ['short', 100n, 0n]],
    ['no line means that nothing was taken', 100n, null, ['short', 100n, 0n]],
    ['more is over, and carried to be given back', 100n, 130n, ['over', -30n, 0n]],
    ['a negative deduction given back exactly is matched', -100n, -100n, ['matched', 0n, 0n]],
    ['less given back than due is over', -100n, -60n, ['over', -40n, 0n]],
    ['more given back than due is short', -100n, -130n, ['short', 30n, 0n]],
  ])('%s', (_, deducted, taken, expected) => {
    expect(compare(deducted, taken)).toEqual(expected)
  })

  test('a shortfall is written off if that is the policy; an excess never is', () => {
    expect(compare(100n, 60n, 'write_off')).toEqual(['short', 0n, 40n])
    expect(compare(100n, 130n, 'write_off')).toEqual(['over', -30n, 0n])
  })

  test('an amount taken from a member without a deduction is given back', () => {
    const line = only(settle([took('mem_b', 25n)], { deductions: [], policy: 'write_off' }))
    expect(line).toMatchObject({ outcome: 'unknown', deducted: 0n, taken: 25n, carried: -25n, writtenOff: 0n })
  })
})

describe('errors in lines', () => {
  const about = {
    deductions: [deduction('mem_a', 100n), deduction('mem_b', -50n), deduction('mem_c', 10n, 'EUR')],
    currencyOf: new Map<string, Currency>([
      ['mem_a', 'GBP'],
      ['mem_b', 'GBP'],
      ['mem_c', 'GBP'],
      ['mem_d', 'EUR'],
    ]),
  }
  test.each<[string, Taken[], string[]]>([
    ['valid lines have none', [took('mem_a', 100n), took('mem_b', -50n), took('mem_d', 1n, 'EUR')], []],
    ['an unknown member', [took('mem_x', 100n)], ['0 memberId']],
    ['a currency other than the deduction’s', [took('mem_a', 100n, 'EUR')], ['0 currency']],
    ['the current currency, for a deduction in an earlier one', [took('mem_c', 10n)], ['0 currency']],
    ['the earlier currency is valid', [took('mem_c', 10n, 'EUR')], []],
    ['a currency other than the member’s', [took('mem_d', 1n)], ['0 currency']],
    [
      'a negative amount without a negative deduction',
      [took('mem_a', -1n), took('mem_d', -1n, 'EUR', 1)],
      ['0 amount', '1 amount'],
    ],
    ['a duplicate member', [took('mem_a', 60n), took('mem_a', 40n, 'GBP', 1)], ['1 memberId']],
    [
      'a total above the largest safe number',
      [took('mem_a', 9_007_199_254_740_991n), took('mem_b', 1n, 'GBP', 1)],
      ['1 amount'],
    ],
  ])('%s', (_, taken, expected) => {
    expect(taken.flatMap(lineCheck({ ...about, totals: new Map() })).map(({ at, field }) => `${at} ${field}`)).toEqual(
      expected,
    )
  })
})

test('settling always brings earned pay of the cycle and the carried account to zero', () => {
  const members = ['mem_a', 'mem_b', 'mem_c', 'mem_d']
  const amounts = fc.array(fc.option(fc.bigInt({ min: -200n, max: 200n }).filter(amount => amount !== 0n)), {
    minLength: 4,
    maxLength: 4,
  })
  const claims = fc.array(fc.option(fc.bigInt({ min: -200n, max: 200n })), { minLength: 4, maxLength: 4 })
  const lines = (found: (bigint | null)[]) =>
    members.flatMap((memberId, index) => {
      const amount = found[index]
      return amount === null || amount === undefined ? [] : [{ memberId, amount, currency: 'GBP' as const, at: index }]
    })
  fc.assert(
    fc.property(amounts, claims, fc.constantFrom('carry' as const, 'write_off' as const), (deducted, taken, policy) => {
      const deductions = lines(deducted)
      const settled = settle(lines(taken), { deductions, policy })
      for (const line of settled) {
        expect(line.deducted).toBe(line.taken + line.carried + line.writtenOff)
        expect(line.writtenOff >= 0n).toBe(true)
        const sum = (account: string, payCycleId?: string) =>
          transfersOf(line, { settledCycleId: 'pc_a', openCycleId: 'pc_b', takenTo: 'float' })
            .filter(transfer => payCycleId === undefined || transfer.payCycleId === payCycleId)
            .reduce(
              (total, { debit, credit, amount }) =>
                total + (debit === account ? amount : 0n) - (credit === account ? amount : 0n),
              0n,
            )
        expect(line.deducted + sum('earned_pay', 'pc_a')).toBe(0n)
        expect(sum('earned_pay', 'pc_b')).toBe(line.carried)
        expect(sum('carried')).toBe(0n)
        expect(sum('float')).toBe(line.taken)
        expect(sum('written_off')).toBe(line.writtenOff)
      }
    }),
  )
})
