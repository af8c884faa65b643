import { readFileSync } from 'node:fs'
import * as dinero from '@dinero.js/currencies'
import currencyCodes from 'currency-codes'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  allToWire,
  amountMax,
  byCurrency,
  CurrencyCode,
  currencies,
  decimalsOf,
  fromDecimals,
  fromWire,
  inDecimals,
  inWords,
  SignedMoney,
  shareRoundedDown,
  signedMoney,
  sumsByCurrency,
  sumToWire,
  toWire,
  WireMoney,
} from './money.ts'

test('exactly the 179 listed currencies are supported, in alphabetical order', () => {
  expect(currencies).toHaveLength(179)
  expect([...new Set(currencies)].sort()).toEqual(currencies)
})

test('money is validated by the published schemas, and described in its place', () => {
  const { schemas } = JSON.parse(readFileSync('openapi.json', 'utf8')).components
  for (const schema of [WireMoney, SignedMoney]) {
    const { title, properties, ...rest } = JSON.parse(JSON.stringify(schema))
    const { title: name, description, ...currency } = properties.currency
    expect(currency).toEqual(schemas[name])
    const shared = { $ref: `#/components/schemas/${name}`, description }
    expect({ ...rest, properties: { ...properties, currency: shared } }).toEqual(schemas[title])
  }
  expect(CurrencyCode).toMatchObject({ enum: currencies })
  expect(signedMoney('The balance.')).toEqual({ ...SignedMoney, description: 'The balance.' })
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

const max = BigInt(amountMax)

test('an amount that JSON cannot hold exactly never reaches the wire; of a sum, the largest one that it can', () => {
  expect(amountMax).toBe(2 ** 53 - 1)
  for (const amount of [max, -max, 0n, -1n]) {
    expect(toWire({ amount, currency: 'GBP' })).toEqual({ amount: Number(amount), currency: 'GBP' })
    expect(sumToWire({ amount, currency: 'GBP' })).toEqual({ amount: Number(amount), currency: 'GBP' })
  }
  for (const amount of [max + 1n, -max - 1n]) {
    expect(() => toWire({ amount, currency: 'GBP' })).toThrow(`${amount} GBP`)
    expect(sumToWire({ amount, currency: 'GBP' }).amount).toBe(amount > 0n ? amountMax : -amountMax)
  }
  expect(allToWire({ gross: 5_000n, fee: 50n }, 'EUR')).toEqual({
    ...{ gross: { amount: 5_000, currency: 'EUR' }, fee: { amount: 50, currency: 'EUR' } },
  })
})

test('amounts are added up by currency, in alphabetical order', () => {
  const amounts = (['GBP', 'EUR', 'GBP', 'CHF', 'EUR'] as const).map((currency, index) => ({
    ...{ amount: 10n ** BigInt(index), currency },
  }))
  const sums = [
    { amount: 1_000n, currency: 'CHF' },
    { amount: 10_010n, currency: 'EUR' },
    { amount: 101n, currency: 'GBP' },
  ]
  expect(sumsByCurrency(amounts)).toEqual(sums)
  expect(sumsByCurrency(amounts.toReversed())).toEqual(sums)
  const [francs, euros] = [{ currency: 'CHF' }, { currency: 'EUR' }] as const
  expect([byCurrency(francs, euros), byCurrency(euros, francs), byCurrency(euros, euros)]).toEqual([-1, 1, 0])
})

test('formatted money has the decimals of its currency', () => {
  expect(inWords({ amount: 1250n, currency: 'GBP' })).toBe('12.50 GBP')
  expect(inWords({ amount: 5n, currency: 'GBP' })).toBe('0.05 GBP')
  expect(inWords({ amount: 0n, currency: 'GBP' })).toBe('0.00 GBP')
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
  expect(fromDecimals('90071992547409.91', 'GBP')).toBe(max)
  expect(fromDecimals('-90071992547409.91', 'GBP')).toBe(-max)
  const tooLarge = ['90071992547409.92', '-90071992547409.92']
  for (const text of ['', '.5', '5.', '1.005', '1,000', '£5', '+5', '1e3', ' 5', '0x5', '--5', ...tooLarge])
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
