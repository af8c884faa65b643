import * as dinero from '@dinero.js/currencies'
import currencyCodes from 'currency-codes'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  currencies,
  decimalsOf,
  fromDecimals,
  fromWire,
  inDecimals,
  inWords,
  shareRoundedDown,
  toWire,
} from './money.ts'

test('exactly the 179 listed currencies are supported', () => {
  expect(currencies).toHaveLength(179)
  expect(new Set(currencies).size).toBe(179)
})

test('the decimals of every currency agree with two independent tables', () => {
  const exponents = new Map(
    Object.entries(dinero).map(([code, entry]) => [code, 'exponent' in entry ? entry.exponent : undefined]),
  )
  for (const currency of currencies) {
    const known = [currencyCodes.code(currency)?.digits, exponents.get(currency)].filter(each => each !== undefined)
    // The minor unit of MGA and MRU is a fifth. One table counts that as one decimal; ISO 4217 says two.
    const others = ['MGA', 'MRU'].includes(currency) ? known.slice(0, 1) : known
    expect(others.length, currency).toBeGreaterThan(0)
    for (const decimals of others) expect(decimals, currency).toBe(decimalsOf.get(currency))
  }
})

test('money survives a round trip over the wire', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), amount => {
      expect(toWire(fromWire({ amount, currency: 'GBP' }))).toEqual({ amount, currency: 'GBP' })
    }),
  )
})

test('an amount that JSON cannot hold exactly never reaches the wire', () => {
  expect(() => toWire({ amount: 2n ** 53n, currency: 'GBP' })).toThrow()
  expect(() => toWire({ amount: -(2n ** 53n), currency: 'GBP' })).toThrow()
})

test('formatted money has the decimals of its currency', () => {
  expect(inWords({ amount: 1250n, currency: 'GBP' })).toBe('12.50 GBP')
  expect(inWords({ amount: 5n, currency: 'GBP' })).toBe('0.05 GBP')
  expect(inWords({ amount: -5n, currency: 'EUR' })).toBe('-0.05 EUR')
  expect(inWords({ amount: 1250n, currency: 'JPY' })).toBe('1250 JPY')
  expect(inWords({ amount: 1250n, currency: 'KWD' })).toBe('1.250 KWD')
})

test('an amount with decimals is read exactly as written, and any other text is rejected', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), fc.constantFrom(...currencies), (amount, currency) => {
      expect(fromDecimals(inDecimals({ amount: BigInt(amount), currency }), currency)).toBe(BigInt(amount))
    }),
  )
  expect(fromDecimals('12.5', 'GBP')).toBe(1_250n)
  expect(fromDecimals('-0.05', 'GBP')).toBe(-5n)
  for (const text of ['', '.5', '5.', '1.005', '1,000', '£5', '+5', '1e3', ' 5', '0x5', '--5', '90071992547409.92'])
    expect(fromDecimals(text, 'GBP'), text).toBeUndefined()
  expect(fromDecimals('12.5', 'JPY')).toBeUndefined()
})

test('a share is rounded down and never overstated', () => {
  expect(shareRoundedDown(199n, 100)).toBe(1n)
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 15n }), fc.integer({ min: 0, max: 10_000 }), (amount, bps) => {
      const share = shareRoundedDown(amount, bps)
      expect(share * 10_000n <= amount * BigInt(bps)).toBe(true)
      expect((share + 1n) * 10_000n > amount * BigInt(bps)).toBe(true)
    }),
  )
})
