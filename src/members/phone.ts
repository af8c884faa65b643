import {
  type CountryCode,
  getCountries,
  getCountryCallingCode,
  isSupportedCountry,
  Metadata,
  parsePhoneNumberFromString,
} from 'libphonenumber-js'

/**
 * A phone number in E.164; undefined for what cannot be one. Numbers that are not assigned, such as those kept for
 * drama, are numbers too: what is in use changes faster than our tables.
 * @param country of numbers that are written without one
 */
export function toE164(text: string, country: string): string | undefined {
  if (isPlainlyE164(text)) return text
  const parsed = parsePhoneNumberFromString(text, {
    ...(isSupportedCountry(country) ? { defaultCountry: country } : {}),
    // Only a number, not a sentence that holds one.
    extract: false,
  })
  // E.164 has no room for an extension, and dropping it would be another number.
  return parsed?.isPossible() && parsed.ext === undefined ? parsed.number : undefined
}

/**
 * Whether the library would give a text back as it is, told by the library's own tables without parsing: a file may hold a
 * million numbers, and parsing one takes 25 µs. False says nothing.
 */
function isPlainlyE164(text: string): boolean {
  if (!/^\+[1-9][0-9]{6,14}$/.test(text)) return false
  // No calling code begins with another one.
  const length = [1, 2, 3].find(each => plans.has(text.slice(1, 1 + each)))
  if (length === undefined) return false
  const national = text.slice(1 + length)
  // What begins like a national prefix might lose it. Several countries may share a calling code: all must agree.
  return (plans.get(text.slice(1, 1 + length)) ?? []).every(
    ({ lengths, prefix }) => lengths.includes(national.length) && !prefix?.test(national),
  )
}

type Plan = { lengths: number[]; prefix: RegExp | undefined }

const plans = new Map<string, Plan[]>()
for (const country of getCountries()) {
  const callingCode = getCountryCallingCode(country)
  plans.set(callingCode, [...(plans.get(callingCode) ?? []), planOf(country)])
}

function planOf(country: CountryCode): Plan {
  const metadata = new Metadata()
  metadata.selectNumberingPlan(country)
  // The library's types leave out what national numbers may begin with; a test holds the outcome against parsing.
  const plan = metadata.numberingPlan as
    | { possibleLengths(): number[]; nationalPrefixForParsing?(): string }
    | undefined
  const prefix = plan?.nationalPrefixForParsing?.()
  return { lengths: plan?.possibleLengths() ?? [], prefix: prefix ? new RegExp(`^(?:${prefix})`) : undefined }
}
