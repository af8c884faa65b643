import { isSupportedCountry } from 'libphonenumber-js'
import { type Static, type TSchema, type TSchemaOptions, Type } from 'typebox'
import { namedObject, strict, wordOf } from '../kernel/schemas.ts'

// The limit of `Ustrd` in pain.001.
const remittanceCharsMax = 140
const rate = { min: 1, max: 1_000_000 }

/**
 * The settings of a partner that operators can change. Columns, the schemas of requests, the options of commands and the console's
 * form derive from this table. `label`, `group` and `note` are those of the form; an omitted setting of a new partner is `byDefault`.
 * A text that its schema accepts can still be refused, with `advice`.
 */
export const settings = {
  country: {
    ...text('Country of phone numbers without a country code.', { pattern: '^[A-Z]{2}$' }, 'GB'),
    ...{ kind: 'country', byDefault: 'GB', group: 'Place', label: 'Country' },
    note: 'Two letters; used for phone numbers without a country code',
    accepts: isSupportedCountry as (text: string) => boolean,
    advice: 'Use a two-letter country code, for example GB',
  },
  timeZone: {
    ...text('IANA time zone of the partner’s calendar days.', { minLength: 1, maxLength: 60 }, 'Europe/London'),
    ...{ kind: 'zone', byDefault: 'Europe/London', group: 'Place', label: 'Time zone' },
    note: 'Used for calendar days, for example Europe/London',
    accepts: isTimeZone,
    advice: 'Use an IANA time zone, for example Europe/London',
  },
  autoActivate: {
    ...toggle('Whether new members are active as soon as they are invited.'),
    ...{ byDefault: false, group: 'Members', label: 'Activate members when invited' },
  },
  graceMinutes: {
    ...whole('How long a pay run can be reverted, in minutes.', { min: 0, max: 10_080 }),
    ...{ byDefault: 10, unit: 'minutes', group: 'Withdrawals', label: 'Grace period of pay runs' },
  },
  intentMinutes: {
    ...whole('How long an intent is valid, in minutes.', { min: 1, max: 1_440 }),
    ...{ byDefault: 15, unit: 'minutes', group: 'Withdrawals', label: 'Intent validity' },
  },
  holdSeconds: {
    ...whole('How long a withdrawal can be cancelled, in seconds.', { min: 0, max: 86_400 }),
    ...{ byDefault: 30, unit: 'seconds', group: 'Withdrawals', label: 'Cancellation period of withdrawals' },
  },
  requestsPerSecond: {
    ...whole('Sustained rate limit.', rate),
    ...{ byDefault: 100, unit: 'requests per second', group: 'Requests', label: 'Sustained rate' },
  },
  requestsBurst: {
    ...whole('Requests allowed in a burst.', rate),
    ...{ byDefault: 200, unit: 'requests', group: 'Requests', label: 'Burst' },
  },
  cycleSchedule: {
    ...choice('Length of a pay cycle.', {
      weekly: 'One week',
      two_weekly: 'Two weeks',
      four_weekly: 'Four weeks',
      semi_monthly: 'Half a month',
      monthly: 'One month',
    }),
    ...{ byDefault: 'monthly', group: 'Pay cycles', label: 'Cycle length' },
  },
  cycleAnchor: {
    ...text(
      'A day on which a pay cycle starts; for monthly cycles, from the 1st to the 28th.',
      { format: 'date' },
      '2026-01-05',
    ),
    ...{ kind: 'day', byDefault: '2024-01-01', group: 'Pay cycles', label: 'Cycle start date' },
    note: 'For a monthly cycle, from the 1st to the 28th',
  },
  shortfallPolicy: {
    ...choice('Whether an amount that payroll could not deduct is carried to the next cycle or written off.', {
      carry: 'Shortfall: carry over',
      write_off: 'Shortfall: write off',
    }),
    ...{ byDefault: 'carry', group: 'Pay cycles', label: 'Shortfalls in deductions' },
  },
  offboardReviewPercent: {
    ...whole('A file that would offboard more than this share of the members waits for approval.', {
      min: 0,
      max: 100,
    }),
    ...{ byDefault: 10, unit: '% of the members', group: 'Members', label: 'Offboarding per import without approval' },
    note: 'An import that would offboard more needs approval',
  },
  reviewDays: {
    ...whole('Days after which a job awaiting approval is rejected.', { min: 1, max: 365 }),
    ...{ byDefault: 14, unit: 'days', group: 'Members', label: 'Reject imports awaiting approval after' },
  },
  remittanceText: {
    ...text(
      "The text beside a SEPA payment on a member’s bank statement; leave empty for none. Letters without accents, digits, spaces and `/ - ? : ( ) . , ' +`. Bacs and Faster Payments have no room for it.",
      { maxLength: remittanceCharsMax },
      'Wages on demand',
    ),
    ...{ kind: 'text', byDefault: '', group: 'Withdrawals', label: 'Text on bank statements' },
    note: "On SEPA payments: letters without accents, digits, spaces and / - ? : ( ) . , ' +",
    accepts: isRemittanceText,
    advice:
      "Use up to 140 letters without accents, digits, spaces and / - ? : ( ) . , ' +, with no space at the start or end",
  },
  metadataInEvents: {
    ...toggle('Whether events include the metadata of their member, intent, pay run or webhook endpoint.'),
    ...{ byDefault: false, group: 'Events', label: 'Include metadata in events' },
  },
} as const satisfies Record<string, Setting>

/** The groups of the console's form, in its order. */
export const settingGroups = ['Place', 'Pay cycles', 'Withdrawals', 'Members', 'Events', 'Requests'] as const

export type Setting = {
  kind: 'text' | 'country' | 'zone' | 'day' | 'number' | 'switch' | 'choice'
  schema: TSchema
  description: string
  byDefault: string | number | boolean
  group: (typeof settingGroups)[number]
  label: string
  note?: string
  unit?: string
  /** Both bounds are inclusive. */
  bounds?: { min: number; max: number }
  /** The values of a choice, as the console words them. */
  choices?: Record<string, string>
  accepts?: (text: string) => boolean
  advice?: string
}

type Table = typeof settings
type Name = keyof Table
export const settingNames = Object.keys(settings) as Name[]

const fields = Object.fromEntries(settingNames.map(name => [name, settings[name].schema])) as {
  [N in Name]: Table[N]['schema']
}
export const Settings = namedObject('PartnerSettings', fields)
export type Settings = Static<typeof Settings>
export const SomeSettings = Type.Partial(Type.Object(fields), { title: 'PartnerSettingsChange', ...strict })
export type SomeSettings = Static<typeof SomeSettings>

/** The settings of a new partner, unless the operator chooses others. */
export const defaultSettings = Object.fromEntries(
  settingNames.map(name => [name, settings[name].byDefault]),
) as Settings

/** Checks the settings that no schema can check. Returns the first fault, and what to use instead. */
export function faultOf(given: SomeSettings): { path: string; message: string } | undefined {
  for (const [path, { accepts, advice = '' }] of Object.entries<Setting>(settings)) {
    const value = given[path as Name]
    if (typeof value === 'string' && accepts?.(value) === false) return { path, message: advice }
  }
  return undefined
}

function text(description: string, syntax: TSchemaOptions, example: string) {
  return { description, schema: Type.String({ ...syntax, description, examples: [example] }) }
}

function toggle(description: string) {
  return { kind: 'switch', description, schema: Type.Boolean({ description }) } as const
}

function whole(description: string, { min, max }: { min: number; max: number }) {
  const schema = Type.Integer({ minimum: min, maximum: max, description })
  return { kind: 'number', description, bounds: { min, max }, schema } as const
}

function choice<const Choices extends Record<string, string>>(description: string, choices: Choices) {
  const schema = wordOf(Object.keys(choices) as (keyof Choices & string)[], { description })
  return { kind: 'choice', description, choices, schema } as const
}

function isTimeZone(text: string): boolean {
  try {
    // Intl.supportedValuesOf leaves out aliases, such as Asia/Kolkata.
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions()
    return /^[A-Z]/.test(text) && timeZone !== ''
  } catch {
    return false
  }
}

/** Whether banks accept a text unchanged: only SEPA characters, no leading or trailing spaces. */
function isRemittanceText(text: string): boolean {
  return text.length <= remittanceCharsMax && /^[A-Za-z0-9/?:().,'+ -]*$/.test(text) && text === text.trim()
}
