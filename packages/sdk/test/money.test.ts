import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { currencies, decimalsOf, inDecimals } from '../../../src/kernel/money.ts'
import { type Currency, eur, format, gbp, id, money, toDecimal } from '../src/index.ts'

const amounts = fc.integer({ min: -Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER })

describe('money', () => {
  test('is read exactly', () => {
    expect(gbp('12.34')).toEqual({ amount: 1_234, currency: 'GBP' })
    // As a float, 1.15 × 100 is 114.99….
    expect(gbp('1.15')).toEqual({ amount: 115, currency: 'GBP' })
    expect(eur('0.5')).toEqual({ amount: 50, currency: 'EUR' })
    expect(gbp('7')).toEqual({ amount: 700, currency: 'GBP' })
    expect(gbp('-0.01').amount).toBe(-1)
    expect(Object.is(gbp('-0').amount, 0)).toBe(true)
    expect(money('1500', 'JPY').amount).toBe(1_500)
    expect(money('1.234', 'BHD').amount).toBe(1_234)
    expect(gbp('90071992547409.91').amount).toBe(Number.MAX_SAFE_INTEGER)
  })

  test.each([...['', ' 1', '1,50', '1.', '.5', '+1', '1e3', '0x10', '1.234', '£1', 'NaN', '١٢'], '90071992547409.92'])(
    'refuses %j',
    text => {
      expect(() => gbp(text)).toThrow()
    },
  )

  test('has as many decimals as in the service for every currency, in both directions', () => {
    expect(currencies).toHaveLength(179)
    fc.assert(
      fc.property(fc.constantFrom(...currencies), amounts, (currency, amount) => {
        const text = toDecimal({ amount, currency })
        expect(text).toBe(inDecimals({ amount: BigInt(amount), currency }))
        expect(money(text, currency).amount).toBe(amount || 0)
      }),
    )
  })

  test('is formatted exactly, as Intl formats a decimal text', () => {
    const locales = ['en-GB', 'de-DE', 'fr-FR', 'es-ES', 'pl-PL', 'ro-RO', 'ar-EG', 'hi-IN', 'ja-JP']
    fc.assert(
      fc.property(fc.constantFrom(...currencies), amounts, fc.constantFrom(...locales), (currency, amount, locale) => {
        const decimals = decimalsOf.get(currency) ?? 0
        const options = { minimumFractionDigits: decimals, maximumFractionDigits: decimals }
        const formatter = new Intl.NumberFormat(locale, { style: 'currency', currency, ...options })
        // Newer engines format a text exactly. Node 18 converts the text to a float, so the SDK does not rely on this.
        const expected = formatter.format(toDecimal({ amount: amount || 0, currency }) as `${number}`)
        expect(format({ amount, currency }, locale)).toBe(expected)
      }),
    )
    expect(format(gbp('-0.05'), 'en-GB')).toBe('-£0.05')
    expect(format(gbp('90071992547409.91'), 'en-GB')).toBe('£90,071,992,547,409.91')
    expect(format(gbp('1234.50'), 'de-DE')).toBe('1.234,50\u00a0£')
  })

  test('that is not a whole number of minor units is rejected', () => {
    for (const amount of [0.5, Number.NaN, 2 ** 53]) {
      expect(() => toDecimal({ amount, currency: 'GBP' })).toThrow(RangeError)
      expect(() => format({ amount, currency: 'GBP' as Currency })).toThrow(RangeError)
    }
  })
})

test('an id of another kind is rejected', () => {
  expect(id('mem', 'mem_1')).toBe('mem_1')
  expect(() => id('mem', 'w_1')).toThrow("'w_1' is not an id that begins with mem_")
  expect(() => id('w', 'wi_1')).toThrow(TypeError)
})
