import fc from 'fast-check'
import { parsePhoneNumberFromString } from 'libphonenumber-js'
import { expect, test } from 'vitest'
import { extent } from '../../test/runner/extent.ts'
import { toE164 } from './phone.ts'

const parsed = (text: string) => {
  const number = parsePhoneNumberFromString(text, { defaultCountry: 'GB', extract: false })
  return number?.isPossible() && number.ext === undefined ? number.number : undefined
}

test('a number with a country code is the library’s result, whether or not it had to be parsed', () => {
  const digits = fc.tuple(
    // Half of the numbers are British, because four countries share that calling code.
    fc.oneof(
      fc.constantFrom('44', '1', '7', '39', '49', '358', '590', '800', '55', '52'),
      fc.integer({ min: 1, max: 999 }).map(String),
    ),
    fc.stringMatching(/^[0-9]{4,12}$/),
  )
  fc.assert(
    fc.property(digits, ([code, national]) => {
      const text = `+${code}${national}`
      expect(toE164(text, 'GB')).toBe(parsed(text))
    }),
    { numRuns: extent({ short: 2_000, long: 20_000 }) },
  )
})

test('a number without a country code belongs to the partner’s country', () => {
  expect(toE164('07700 900123', 'GB')).toBe('+447700900123')
  expect(toE164('0176 12345678', 'DE')).toBe('+4917612345678')
  expect(toE164('12', 'GB')).toBeUndefined()
})
