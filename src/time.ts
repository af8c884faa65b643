import { Type } from 'typebox'

/** An instant in an answer: UTC with milliseconds. */
export const Instant = Type.String({
  format: 'date-time',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$',
  examples: ['2026-03-31T09:30:00.000Z'],
})

const dayForm = '[0-9]{4}-[0-9]{2}-[0-9]{2}'
const timeForm = 'T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\\.[0-9]+)?)?Z'

/**
 * An instant in a request: UTC with a `Z`. Seconds may be left out and decimals are not limited, as Java and Go write them.
 * Offsets and leap seconds are refused. Read it with `parseInstant`.
 */
export const GivenInstant = Type.String({
  format: 'instant',
  pattern: `^${dayForm}${timeForm}$`,
  examples: ['2026-03-31T09:30:00.000Z'],
})

/** As `GivenInstant`, or a day, which stands for its start in UTC. */
export const GivenDayOrInstant = Type.String({
  format: 'day-or-instant',
  pattern: `^${dayForm}(${timeForm})?$`,
  examples: ['2026-03-31', '2026-03-31T09:30:00.000Z'],
})

/** The formats of the schemas above, for a validator: `pattern` keeps the form, and these the days that do not exist out. */
export const timeFormats = { instant: beginsWithDay, 'day-or-instant': beginsWithDay }

function beginsWithDay(text: string): boolean {
  const day = text.slice(0, 10)
  const start = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(start.getTime()) && start.toISOString().slice(0, 10) === day
}

/**
 * Parses an instant, or a day, of a request.
 * @param decimals how those beyond milliseconds are rounded. All instants that we store are whole milliseconds, so a bound
 * that is compared with `>=` or `<` is rounded up and one that is compared with `<=` down: each selects exactly the rows
 * that the bound itself would.
 */
export function parseInstant(text: string, { decimals }: { decimals: 'up' | 'down' }): Date {
  const [, whole = text, beyond = ''] = /^(.*\.[0-9]{3})([0-9]+)Z$/.exec(text) ?? []
  const ms = Date.parse(beyond === '' ? text : `${whole}Z`)
  return new Date(decimals === 'up' && /[1-9]/.test(beyond) ? ms + 1 : ms)
}

/** A calendar day as text, '2026-03-31'. Never a Date: a day has no time zone. */
export type Day = string

/** Tells the time. Only the program's start reads the real clock; everybody else is handed one. */
export type Clock = () => Date

/** The calendar day that an instant falls on in a time zone (IANA name, for example 'Europe/London'). */
export function dayIn(timeZone: string, instant: Date): Day {
  return dayFormat(timeZone).format(instant)
}

/** The day `count` days later (or earlier, when negative), on the calendar. */
export function addDays(day: Day, count: number): Day {
  const date = new Date(`${day}T00:00:00Z`)
  date.setUTCDate(date.getUTCDate() + count)
  return date.toISOString().slice(0, 10)
}

/** How many days later the second day is; negative when it is earlier. */
export function daysBetween(from: Day, to: Day): number {
  return (Date.parse(`${to}T00:00:00Z`) - Date.parse(`${from}T00:00:00Z`)) / msPerDay
}

/**
 * The first instant of a day in a time zone. Where clocks are put forward at midnight a day has no 00:00, and now and then
 * a place has skipped a whole day: it is the first instant at which the calendar there shows this day or a later one.
 */
export function startOfDay(timeZone: string, day: Day): Date {
  // No place is more than 15 hours from UTC, so the instant lies between these two; halving finds it to the millisecond.
  let before = Date.parse(`${day}T00:00:00Z`) - 15 * msPerHour
  let after = before + 30 * msPerHour
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (dayIn(timeZone, new Date(middle)) >= day) after = middle
    else before = middle
  }
  return new Date(after)
}

const msPerHour = 3_600_000
const msPerDay = 24 * msPerHour

export function addMinutes(instant: Date, minutes: number): Date {
  return new Date(instant.getTime() + minutes * 60_000)
}

const dayFormats = new Map<string, Intl.DateTimeFormat>()

// Making a format costs far more than using it, and there are few time zones.
function dayFormat(timeZone: string): Intl.DateTimeFormat {
  let format = dayFormats.get(timeZone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' })
    dayFormats.set(timeZone, format)
  }
  return format
}
