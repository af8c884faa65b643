import { addDays, type Day, daysBetween } from '../../kernel/time.ts'

/** The days on which a payment scheme moves money. A calendar only covers the days from `validFrom` to `validUntil`. */
export type Calendar = {
  readonly name: string
  readonly validFrom: Day
  readonly validUntil: Day
  /** Whether the scheme is closed on a day that is not a Saturday or Sunday. */
  readonly isHoliday: (day: Day) => boolean
}

/** The operator's corrections: days that were declared closed at short notice, and the day until which the operator's list is complete. */
export type CalendarOverride = { closedDays?: readonly Day[] | undefined; validUntil?: Day | undefined }

/** Adds the operator's closed days. `validUntil` only ever extends the calendar. */
export function withOverride(calendar: Calendar, { closedDays = [], validUntil }: CalendarOverride): Calendar {
  const closed = new Set(closedDays)
  return {
    ...calendar,
    validUntil: validUntil !== undefined && validUntil > calendar.validUntil ? validUntil : calendar.validUntil,
    isHoliday: day => closed.has(day) || calendar.isHoliday(day),
  }
}

/** A calendar was asked about a day that it does not cover. Guessing would send money on a closed day. */
export class CalendarEnded extends Error {
  constructor({ name, validFrom, validUntil }: Calendar, day: Day) {
    super(`The ${name} calendar covers ${validFrom} to ${validUntil}, not ${day}; update Midmonth or extend it`)
    this.name = 'CalendarEnded'
  }
}

/** @throws CalendarEnded */
export function isBankingDay(calendar: Calendar, day: Day): boolean {
  if (day < calendar.validFrom || day > calendar.validUntil) throw new CalendarEnded(calendar, day)
  return !isWeekend(day) && !calendar.isHoliday(day)
}

/**
 * Returns the first banking day on or after a day.
 * @throws CalendarEnded
 */
export function nextBankingDay(calendar: Calendar, day: Day): Day {
  let next = day
  while (!isBankingDay(calendar, next)) next = addDays(next, 1)
  return next
}

/**
 * Returns the banking day `count` banking days after a day, or before it if negative. The day itself does not count; with a count of 0, the
 * day is returned whether it is a banking day or not.
 * @throws CalendarEnded
 */
export function addBankingDays(calendar: Calendar, day: Day, count: number): Day {
  const step = Math.sign(count)
  let reached = day
  for (let left = Math.abs(count); left > 0; ) {
    reached = addDays(reached, step)
    if (isBankingDay(calendar, reached)) left -= 1
  }
  return reached
}

/** Returns for how many days the calendar still has data: 0 on its last day, negative after it. Raise an alarm in time. */
export function daysLeft(calendar: Calendar, day: Day): number {
  return daysBetween(day, calendar.validUntil)
}

function isWeekend(day: Day): boolean {
  const weekday = new Date(`${day}T00:00:00Z`).getUTCDay()
  return weekday === 0 || weekday === 6
}
