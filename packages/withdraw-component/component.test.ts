import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { currencies, decimalsOf } from '../../src/kernel/money.ts'
import { choices, decimals, format, formatForInput, parse } from './money.ts'
import { fill, languages, type Texts, textsFor } from './texts.ts'

const script = readFileSync(new URL('../../src/site/member-page/midmonth-withdraw.js', import.meta.url))

test('the script is at most 12 kB gzip and needs nothing else', () => {
  expect(gzipSync(script).length).toBeLessThanOrEqual(12_000)
  expect(script.toString()).not.toMatch(/\bimport[\s(]|\brequire\(|\beval\(|innerHTML|new Function/)
})

test('the component knows the decimals of every currency in the API', () => {
  for (const currency of currencies) expect(decimals(currency), currency).toBe(decimalsOf.get(currency))
})

describe('an amount', () => {
  test.each([
    ['20', 'en-GB', 2_000n],
    ['20.5', 'en-GB', 2_050n],
    ['£20.50', 'en-GB', 2_050n],
    ['1,234.5', 'en-GB', 123_450n],
    ['1,000', 'en-GB', 100_000n],
    ['20,5', 'en-GB', 2_050n],
    ['20,50 €', 'de-DE', 2_050n],
    ['1.234,50', 'de-DE', 123_450n],
    ['1.000', 'de-DE', 100_000n],
    ['1 234,50', 'fr-FR', 123_450n],
    ['1’234.50', 'de-CH', 123_450n],
    ['GBP 20', 'en-GB', 2_000n],
    ['0', 'en-GB', 0n],
    ['9999999999999.99', 'en-GB', 999_999_999_999_999n],
  ])('%j in the locale %s is %s minor units', (text, locale, expected) => {
    expect(parse(text, { currency: 'GBP', locale })).toBe(expected)
  })

  test.each([
    ['', 'en-GB'],
    ['abc', 'en-GB'],
    ['-5', 'en-GB'],
    ['1.5.5', 'en-GB'],
    ['20.555', 'en-GB'],
    ['1.000', 'en-GB'],
    ['1,000', 'de-DE'],
    ['1,000,50', 'en-GB'],
    ['1e3', 'en-GB'],
    ['20.', 'en-GB'],
    ['99999999999999.99', 'en-GB'],
    ['٢٠', 'ar'],
  ])('%j in the locale %s is not an amount', (text, locale) => {
    expect(parse(text, { currency: 'GBP', locale })).toBeNull()
  })

  test('has as many decimals as its currency', () => {
    expect(parse('500', { currency: 'JPY', locale: 'ja' })).toBe(500n)
    expect(parse('500.5', { currency: 'JPY', locale: 'ja' })).toBeNull()
    expect(parse('1.234', { currency: 'KWD', locale: 'en' })).toBe(1_234n)
    expect(format({ amount: 500n, currency: 'JPY' }, 'en')).toBe('¥500')
    expect(format({ amount: 1n, currency: 'KWD' }, 'en')).toMatch(/^KWD\s0\.001$/)
    expect(format({ amount: 1n, currency: 'UGX' }, 'en')).toMatch(/^UGX\s1$/)
  })

  test('omits zero decimals where space is short', () => {
    const written = (amount: bigint, locale: string) =>
      format({ amount, currency: 'GBP' }, locale, 'stripIfInteger').replace(/\s/g, ' ')
    expect([written(2_000n, 'en-GB'), written(100_000n, 'en-GB'), written(2_050n, 'en-GB')]).toEqual([
      ...['£20', '£1,000', '£20.50'],
    ])
    expect(written(2_000n, 'de-DE')).toBe('20 £')
  })

  test('is formatted without losing a digit, and parses back to the same amount', () => {
    const amount = 9_007_199_254_740_993n
    expect(format({ amount, currency: 'GBP' }, 'en-GB')).toBe('£90,071,992,547,409.93')
    for (const locale of ['en-GB', 'de-DE', 'fr-FR', 'es-ES', 'pl-PL', 'ro-RO'])
      for (const minor of [1n, 99n, 100n, 123_456n, 100_000_000n]) {
        const text = formatForInput({ amount: minor, currency: 'EUR' }, locale)
        expect(parse(text, { currency: 'EUR', locale }), `${locale} ${text}`).toBe(minor)
      }
  })
})

describe('suggested amounts', () => {
  const gbp = (amount: bigint) => ({ amount, currency: 'GBP' })
  test('are round amounts within the limits, and the largest possible amount', () => {
    expect(choices(gbp(12_345n), { lower: 1_000n, upper: 20_000n })).toEqual([2_000n, 5_000n, 10_000n, 12_345n])
    expect(choices(gbp(90_000n), { lower: 1_000n, upper: 20_000n })).toEqual([2_000n, 5_000n, 10_000n, 20_000n])
    expect(choices(gbp(1_500n), { lower: 1_000n, upper: 20_000n })).toEqual([1_000n, 1_500n])
  })

  test('are empty while too little is available', () => {
    expect(choices(gbp(999n), { lower: 1_000n, upper: 20_000n })).toEqual([])
    expect(choices(gbp(0n), { lower: 1n, upper: 20_000n })).toEqual([])
  })
})

describe('the texts', () => {
  const placesOf = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(String).sort()
  test('have the same placeholders in every language', () => {
    expect(Object.keys(languages)).toEqual(['en', 'de', 'fr', 'es', 'pl', 'ro'])
    const english = textsFor('en')
    for (const [language, texts] of Object.entries(languages))
      for (const name of Object.keys(english) as (keyof Texts)[]) {
        expect(texts[name], `${language} ${name}`).not.toBe('')
        expect(placesOf(texts[name]), `${language} ${name}`).toEqual(placesOf(english[name]))
      }
  })

  test('fall back to English, and keep unknown placeholders', () => {
    expect(textsFor('de-AT')).toBe(languages.de)
    expect(textsFor('sv')).toBe(languages.en)
    expect(fill('{a} {b}', { a: '1' })).toBe('1 {b}')
  })
})
