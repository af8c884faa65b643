import { type Static, Type } from 'typebox'
import { nullable } from './schemas.ts'

/** An instant in a response: UTC with milliseconds. */
export const Instant = Type.String({
  title: 'Instant',
  format: 'date-time',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z$',
  examples: ['2026-03-31T09:30:00.000Z'],
})

export const InstantOrNull = nullable(Instant)

/** A calendar day as text, '2026-03-31'. Never a Date: a day has no time zone. */
export const Day = Type.String({ title: 'Day', format: 'date', examples: ['2026-03-31'] })
export type Day = Static<typeof Day>

const dayForm = '[0-9]{4}-[0-9]{2}-[0-9]{2}'
const timeForm = 'T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\\.[0-9]+)?)?Z'

/**
 * An instant in a request: UTC with a `Z`. Seconds are optional and decimals unlimited, because Java and Go write instants this way.
 * Offsets and leap seconds are rejected. Parse it with `parseInstant`.
 */
export const GivenInstant = Type.String({
  title: 'GivenInstant',
  format: 'instant',
  pattern: `^${dayForm}${timeForm}$`,
  examples: ['2026-03-31T09:30:00.000Z'],
})

/** A `GivenInstant`, or a day, which means midnight UTC. */
export const GivenDayOrInstant = Type.String({
  title: 'DayOrInstant',
  format: 'day-or-instant',
  pattern: `^${dayForm}(${timeForm})?$`,
  examples: ['2026-03-31', '2026-03-31T09:30:00.000Z'],
})

/** The validator formats of the schemas above: `pattern` checks the syntax; these reject days that do not exist. */
export const timeFormats = { instant: beginsWithDay, 'day-or-instant': beginsWithDay }

/** Whether a text is a day that exists. */
export function isDay(text: string): text is Day {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && beginsWithDay(text)
}

/** Whether the day at the start of a text exists. The text must begin in the form of a day. */
export function beginsWithDay(text: string): boolean {
  const day = text.slice(0, 10)
  const start = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(start.getTime()) && start.toISOString().slice(0, 10) === day
}

/**
 * Parses an instant or a day from a request.
 * @param decimals how decimals beyond milliseconds are rounded. Stored instants are whole milliseconds, so round a bound for
 * `>=` or `<` up, and a bound for `<=` down: it then selects exactly the rows that the unrounded bound would.
 */
export function parseInstant(text: string, { decimals }: { decimals: 'up' | 'down' }): Date {
  const [, whole = text, beyond = ''] = /^(.*\.[0-9]{3})([0-9]+)Z$/.exec(text) ?? []
  const ms = Date.parse(beyond === '' ? text : `${whole}Z`)
  return new Date(decimals === 'up' && /[1-9]/.test(beyond) ? ms + 1 : ms)
}

/**
 * A length of time in a request, ISO 8601: weeks, or days, hours, minutes and seconds. Years and months are rejected, because
 * their length depends on when they begin. Parse it with `parseDuration`.
 */
export const GivenDuration = Type.String({
  pattern: '^P([0-9]{1,4}W|(?=.)([0-9]{1,4}D)?(T(?=.)([0-9]{1,6}H)?([0-9]{1,6}M)?([0-9]{1,8}S)?)?)$',
  examples: ['P3D', 'PT15M'],
})

/** Parses a `GivenDuration` to milliseconds. */
export function parseDuration(text: string): number {
  const units = { W: 7 * msPerDay, D: msPerDay, H: msPerHour, M: 60_000, S: 1_000 }
  const parts = [...text.matchAll(/([0-9]+)([WDHMS])/g)]
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * units[unit as keyof typeof units], 0)
}

/** Returns the current time. Only program startup reads the real clock; all other code is handed a clock. */
export type Clock = () => Date

/** Returns the calendar day of an instant in a time zone (IANA name, such as 'Europe/London'). */
export function dayIn(timeZone: string, instant: Date): Day {
  return dayFormat(timeZone).format(instant)
}

/** Returns the calendar day `count` days later, or earlier if negative. */
export function addDays(day: Day, count: number): Day {
  const date = new Date(`${day}T00:00:00Z`)
  date.setUTCDate(date.getUTCDate() + count)
  return date.toISOString().slice(0, 10)
}

/** Returns the number of days between two days; negative if `to` is earlier. */
export function daysBetween(from: Day, to: Day): number {
  return (Date.parse(`${to}T00:00:00Z`) - Date.parse(`${from}T00:00:00Z`)) / msPerDay
}

/**
 * Returns the first instant of a day in a time zone: the first at which the local calendar shows this day or a later one.
 * A day has no 00:00 where clocks go forward at midnight, and some places have skipped a whole day.
 */
export function startOfDay(timeZone: string, day: Day): Date {
  // No time zone is more than 15 hours from UTC, so the instant lies in this range. A binary search finds it to the millisecond.
  let before = Date.parse(`${day}T00:00:00Z`) - 15 * msPerHour
  let after = before + 30 * msPerHour
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2)
    if (dayIn(timeZone, new Date(middle)) >= day) after = middle
    else before = middle
  }
  return new Date(after)
}

/**
 * Returns the instant at which clocks in a time zone show a time of a day, such as '15:00'. If the clocks show the time twice,
 * returns the first instant. If they skip the time, the offset after the change applies, so the instant is never later than
 * expected.
 */
export function instantAt(timeZone: string, day: Day, time: string): Date {
  const asUtc = Date.parse(`${day}T${time}:00Z`)
  // Clocks change at most once within two days, so one of these two offsets is the right one.
  const candidates = [-msPerDay, msPerDay].map(ms => asUtc - offsetMs(timeZone, new Date(asUtc + ms)))
  const exact = candidates.filter(ms => ms + offsetMs(timeZone, new Date(ms)) === asUtc)
  return new Date(Math.min(...(exact.length > 0 ? exact : candidates)))
}

/** Returns how far the clocks of a time zone are ahead of UTC at an instant. */
function offsetMs(timeZone: string, instant: Date): number {
  const wholeMinute = Math.floor(instant.getTime() / 60_000) * 60_000
  const [month, day, year, hour, minute] =
    minuteFormat(timeZone)
      .format(wholeMinute)
      .match(/[0-9]+/g)
      ?.map(Number) ?? []
  if (month === undefined || day === undefined || year === undefined) throw new Error(`No local time in ${timeZone}`)
  return Date.UTC(year, month - 1, day, hour, minute) - wholeMinute
}

const msPerHour = 3_600_000
const msPerDay = 24 * msPerHour

export function addMinutes(instant: Date, minutes: number): Date {
  return new Date(instant.getTime() + minutes * 60_000)
}

const dayFormats = new Map<string, Intl.DateTimeFormat>()

// Creating a format costs far more than using it, and there are few time zones.
function dayFormat(timeZone: string): Intl.DateTimeFormat {
  let format = dayFormats.get(timeZone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-CA', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' })
    dayFormats.set(timeZone, format)
  }
  return format
}

const minuteFormats = new Map<string, Intl.DateTimeFormat>()

function minuteFormat(timeZone: string): Intl.DateTimeFormat {
  let format = minuteFormats.get(timeZone)
  if (format === undefined) {
    const parts = { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit' } as const
    format = new Intl.DateTimeFormat('en-US', { timeZone, hourCycle: 'h23', ...parts })
    minuteFormats.set(timeZone, format)
  }
  return format
}
