import { isSupportedCountry } from 'libphonenumber-js'
import { type Static, Type } from 'typebox'
import { beginsWithDay } from '../kernel/time.ts'
import { cycleSchedules, shortfallPolicies } from './partners.ts'

// The settings that operators can change, by command or by request.

/** Both bounds are inclusive. */
export const settingBounds = {
  graceMinutes: { min: 0, max: 10_080 },
  intentMinutes: { min: 1, max: 1_440 },
  holdSeconds: { min: 0, max: 86_400 },
  requestsPerSecond: { min: 1, max: 1_000_000 },
  requestsBurst: { min: 1, max: 1_000_000 },
  offboardReviewPercent: { min: 0, max: 100 },
  reviewDays: { min: 1, max: 365 },
} as const

export function isCountry(text: string): boolean {
  return isSupportedCountry(text)
}

export function isTimeZone(text: string): boolean {
  try {
    // Intl.supportedValuesOf leaves out aliases, such as Asia/Kolkata.
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions()
    return /^[A-Z]/.test(text) && timeZone !== ''
  } catch {
    return false
  }
}

// The limit of `Ustrd` in pain.001.
const remittanceCharsMax = 140

/** Whether banks accept a text unchanged: only SEPA characters, no leading or trailing spaces. */
export function isRemittanceText(text: string): boolean {
  return text.length <= remittanceCharsMax && /^[A-Za-z0-9/?:().,'+ -]*$/.test(text) && text === text.trim()
}

export const remittanceAdvice =
  "Use up to 140 letters without accents, digits, spaces and / - ? : ( ) . , ' +, with no space at the start or end"

export function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && beginsWithDay(text)
}

const bounded = (name: keyof typeof settingBounds, description: string) =>
  Type.Integer({ minimum: settingBounds[name].min, maximum: settingBounds[name].max, description })

const fields = {
  country: Type.String({
    pattern: '^[A-Z]{2}$',
    description: 'Country of phone numbers without a country code.',
    examples: ['GB'],
  }),
  timeZone: Type.String({
    minLength: 1,
    maxLength: 60,
    description: 'IANA time zone of the partner’s calendar days.',
    examples: ['Europe/London'],
  }),
  autoActivate: Type.Boolean({ description: 'Whether new members are active as soon as they are invited.' }),
  graceMinutes: bounded('graceMinutes', 'How long a pay run can be reverted, in minutes.'),
  intentMinutes: bounded('intentMinutes', 'How long an intent is valid, in minutes.'),
  holdSeconds: bounded('holdSeconds', 'How long a withdrawal can be cancelled, in seconds.'),
  requestsPerSecond: bounded('requestsPerSecond', 'Sustained rate limit.'),
  requestsBurst: bounded('requestsBurst', 'Requests allowed in a burst.'),
  cycleSchedule: Type.Enum([...cycleSchedules], { type: 'string', description: 'Length of a pay cycle.' }),
  cycleAnchor: Type.String({
    format: 'date',
    description: 'A day on which a pay cycle starts; for monthly cycles, from the 1st to the 28th.',
    examples: ['2026-01-05'],
  }),
  shortfallPolicy: Type.Enum([...shortfallPolicies], {
    type: 'string',
    description: 'Whether an amount that payroll could not deduct is carried to the next cycle or written off.',
  }),
  offboardReviewPercent: bounded(
    'offboardReviewPercent',
    'A file that would offboard more than this share of the members waits for approval.',
  ),
  reviewDays: bounded('reviewDays', 'Days after which a job awaiting approval is rejected.'),
  remittanceText: Type.String({
    maxLength: remittanceCharsMax,
    description:
      "The text beside a SEPA payment on a member’s bank statement; leave empty for none. Letters without accents, digits, spaces and `/ - ? : ( ) . , ' +`. Bacs and Faster Payments have no room for it.",
    examples: ['Wages on demand'],
  }),
  metadataInEvents: Type.Boolean({
    description: 'Whether events include the metadata of their member, intent, pay run or webhook endpoint.',
  }),
}

const strict = { additionalProperties: false }

export const Settings = Type.Object(fields, { title: 'PartnerSettings', ...strict })
export const SomeSettings = Type.Partial(Type.Object(fields), { title: 'PartnerSettingsChange', ...strict })
export type SomeSettings = Static<typeof SomeSettings>

/** Checks the settings that no schema can check. Returns the first fault, and what to use instead. */
export function faultOf({
  country,
  timeZone,
  remittanceText,
}: SomeSettings): { path: string; message: string } | undefined {
  if (country !== undefined && !isCountry(country))
    return { path: 'country', message: 'Use a two-letter country code, for example GB' }
  if (timeZone !== undefined && !isTimeZone(timeZone))
    return { path: 'timeZone', message: 'Use an IANA time zone, for example Europe/London' }
  if (remittanceText !== undefined && !isRemittanceText(remittanceText))
    return { path: 'remittanceText', message: remittanceAdvice }
  return undefined
}
