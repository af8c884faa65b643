import { Type } from 'typebox'

/**
 * An instant in a request: UTC with a `Z`, exactly as answers write it (milliseconds may be left out). The pattern keeps
 * out what the format lets through and JavaScript does not know: leap seconds, offsets, blanks for the T.
 */
export const Instant = Type.String({
  format: 'date-time',
  pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,3})?Z$',
  examples: ['2026-03-31T09:30:00.000Z'],
})

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
