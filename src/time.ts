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
