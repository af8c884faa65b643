import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bronze, gold, silver } from '../../test/harness/samples.ts'
import { feeOf, lowestAmount, memberFeeOf, termsFault } from './rules.ts'
import type { TierTerms } from './terms.ts'

test('the fee is the fixed part plus the percentage part, within the minimum and maximum', () => {
  expect(feeOf(bronze, 5_000n)).toBe(100n)
  expect(feeOf(bronze, 5_099n)).toBe(100n)
  expect(feeOf({ ...bronze, feeFixed: 0n }, 1_000n)).toBe(50n)
  expect(feeOf(bronze, 20_000n)).toBe(250n)
  expect(feeOf({ ...bronze, feeBps: 500 }, 20_000n)).toBe(300n)
  expect(feeOf(silver, 20_000n)).toBe(50n)
})

test('a fee paid by the employer costs the member nothing', () => {
  expect(feeOf(gold, 5_000n)).toBe(50n)
  expect(memberFeeOf(gold, 5_000n)).toBe(0n)
})

test('the lowest amount exceeds the lower limit if the fee would consume the limit', () => {
  expect(lowestAmount(bronze)).toBe(1_000n)
  expect(lowestAmount({ ...silver, lowerLimit: 1n })).toBe(51n)
  expect(lowestAmount({ ...gold, lowerLimit: 1n })).toBe(1n)
})

const terms: fc.Arbitrary<TierTerms> = fc
  .record({
    feeFixed: fc.bigInt({ min: 0n, max: 2_000n }),
    feeBps: fc.integer({ min: 0, max: 9_999 }),
    feeMin: fc.option(fc.bigInt({ min: 0n, max: 500n })),
    feeMaxAbove: fc.option(fc.bigInt({ min: 0n, max: 3_000n })),
    feePayer: fc.constantFrom('member' as const, 'employer' as const),
    lowerLimit: fc.bigInt({ min: 1n, max: 5_000n }),
    span: fc.bigInt({ min: 0n, max: 100_000n }),
  })
  .map(({ feeMaxAbove, span, ...rest }) => ({
    ...rest,
    feeMax: feeMaxAbove === null ? null : (rest.feeMin ?? 0n) + feeMaxAbove,
    upperLimit: rest.lowerLimit + span,
    withdrawalsPerDay: null,
    withdrawalsPerCycle: null,
    payoutSpeed: null,
  }))

test('the lowest amount is the smallest one that leaves the member something after the fee', () => {
  fc.assert(
    fc.property(
      terms.filter(each => termsFault(each) === undefined),
      fc.bigInt({ min: 0n, max: 100_000n }),
      (each, offset) => {
        const lowest = lowestAmount(each)
        const amount = lowest + (offset % (each.upperLimit - lowest + 1n))
        expect(amount - memberFeeOf(each, amount) >= 1n).toBe(true)
        expect(lowest === each.lowerLimit || memberFeeOf(each, lowest - 1n) >= lowest - 1n).toBe(true)
      },
    ),
  )
})

test('contradictory terms are rejected with a message that names the problem', () => {
  expect(termsFault(bronze)).toBeUndefined()
  expect(termsFault({ ...bronze, feeMax: 10n })).toMatch(/maximum fee/)
  expect(termsFault({ ...bronze, feeBps: 10_000 })).toMatch(/basis points/)
  expect(termsFault({ ...bronze, lowerLimit: 0n })).toMatch(/lower limit/)
  expect(termsFault({ ...bronze, upperLimit: 999n })).toMatch(/upper limit/)
  expect(termsFault({ ...silver, feeFixed: 20_000n })).toMatch(/every amount/)
  expect(termsFault({ ...silver, withdrawalsPerDay: 0 })).toMatch(/at least 1/)
  expect(termsFault({ ...silver, withdrawalsPerDay: 1_001 })).toMatch(/at most 1000 per day/)
  expect(termsFault({ ...silver, withdrawalsPerCycle: 10_001 })).toMatch(/10000 per cycle/)
})
