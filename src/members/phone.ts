import { createRequire } from 'node:module'
import type { CountryCode } from 'libphonenumber-js'

type Library = typeof import('libphonenumber-js')

let library: Library | undefined
/**
 * Loads the library with the first phone number, because it is a tenth of the code that a start loads. `import()` would be
 * asynchronous.
 */
const phones = (): Library => (library ??= createRequire(import.meta.url)('libphonenumber-js') as Library)

/**
 * Converts a phone number to E.164; undefined if it is not a possible number. Unassigned numbers are accepted, such as those
 * reserved for drama: assignments change faster than the library's tables.
 * @param country default for numbers without a country code
 */
export function toE164(text: string, country: string): string | undefined {
  if (isPlainlyE164(text)) return text
  const { isSupportedCountry, parsePhoneNumberFromString } = phones()
  const parsed = parsePhoneNumberFromString(text, {
    ...(isSupportedCountry(country) ? { defaultCountry: country } : {}),
    // Only a number, not a sentence with a number in it.
    extract: false,
  })
  // E.164 has no room for an extension, and dropping it would change the number.
  return parsed?.isPossible() && parsed.ext === undefined ? parsed.number : undefined
}

/**
 * Whether the library would return the text unchanged, decided by the library's own tables without parsing: a file may have a
 * million numbers, and parsing one takes 25 µs. False means unknown.
 */
function isPlainlyE164(text: string): boolean {
  if (!/^\+[1-9][0-9]{6,14}$/.test(text)) return false
  knownPlans ??= readPlans()
  const plans = knownPlans
  // Calling codes are prefix-free.
  const length = [1, 2, 3].find(each => plans.has(text.slice(1, 1 + each)))
  if (length === undefined) return false
  const national = text.slice(1 + length)
  // A number that begins with a national prefix might lose it. Countries may share a calling code: all must agree.
  return (plans.get(text.slice(1, 1 + length)) ?? []).every(
    ({ lengths, prefix }) => lengths.includes(national.length) && !prefix?.test(national),
  )
}

type NumberingPlan = { lengths: number[]; prefix: RegExp | undefined }

/** By calling code. */
let knownPlans: Map<string, NumberingPlan[]> | undefined

function readPlans(): Map<string, NumberingPlan[]> {
  const { getCountries, getCountryCallingCode } = phones()
  const read = new Map<string, NumberingPlan[]>()
  for (const country of getCountries()) {
    const callingCode = getCountryCallingCode(country)
    read.set(callingCode, [...(read.get(callingCode) ?? []), planOf(country)])
  }
  return read
}

function planOf(country: CountryCode): NumberingPlan {
  const metadata = new (phones().Metadata)()
  metadata.selectNumberingPlan(country)
  // The library's types omit the national prefix; a test compares the result with parsing.
  const plan = metadata.numberingPlan as
    | { possibleLengths(): number[]; nationalPrefixForParsing?(): string }
    | undefined
  const prefix = plan?.nationalPrefixForParsing?.()
  return { lengths: plan?.possibleLengths() ?? [], prefix: prefix ? new RegExp(`^(?:${prefix})`) : undefined }
}
