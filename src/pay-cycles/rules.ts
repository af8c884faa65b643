import { type Problem, problem } from '../errors.ts'
import type { CycleSchedule } from '../partners/partners.ts'
import { addDays, type Day, daysBetween } from '../time.ts'

/** How a partner's pay cycles follow each other. */
export type Schedule = {
  every: CycleSchedule
  /**
   * A day on which some cycle starts. Of `monthly` only its day of the month counts (1 is the calendar month);
   * `semi_monthly` needs none: its cycles are the 1st to the 15th, and the 16th to the end of the month.
   */
  anchor: Day
}

/** First and last day of a cycle, both included. */
export type Span = { startDate: Day; endDate: Day }

/**
 * The cycle of the schedule that a day is in. The cycles of one schedule lie end to end: every day is in exactly one.
 * @throws when a monthly schedule is anchored on a 29th, 30th or 31st, which not every month has
 */
export function cycleOf({ every, anchor }: Schedule, day: Day): Span {
  switch (every) {
    case 'weekly':
      return spanOf(7, anchor, day)
    case 'two_weekly':
      return spanOf(14, anchor, day)
    case 'four_weekly':
      return spanOf(28, anchor, day)
    case 'semi_monthly':
      return day.slice(8) <= '15'
        ? { startDate: inMonth(day, '01'), endDate: inMonth(day, '15') }
        : { startDate: inMonth(day, '16'), endDate: addDays(inMonth(monthAfter(day), '01'), -1) }
    case 'monthly': {
      const dayOfMonth = anchor.slice(8)
      if (dayOfMonth > '28') throw new Error(`A monthly pay cycle starts on a day from 1 to 28, not on ${dayOfMonth}`)
      const month = day.slice(8) >= dayOfMonth ? day : monthBefore(day)
      return { startDate: inMonth(month, dayOfMonth), endDate: addDays(inMonth(monthAfter(month), dayOfMonth), -1) }
    }
    default:
      return every satisfies never
  }
}

/**
 * The cycle that follows: it starts the day after, and ends where the schedule says. When the schedule has changed
 * meanwhile, the first cycle of the new one is shorter, so that there is neither a gap nor an overlap.
 */
export function cycleAfter(schedule: Schedule, previous: Span): Span {
  const startDate = addDays(previous.endDate, 1)
  return { startDate, endDate: cycleOf(schedule, startDate).endDate }
}

function spanOf(days: number, anchor: Day, day: Day): Span {
  // Rounded down, also for days before the anchor.
  const startDate = addDays(anchor, Math.floor(daysBetween(anchor, day) / days) * days)
  return { startDate, endDate: addDays(startDate, days - 1) }
}

function inMonth(month: Day, dayOfMonth: string): Day {
  return `${month.slice(0, 7)}-${dayOfMonth}`
}

// The 1st plus 31 days is in the next month, and the 1st less one day in the one before, whatever the month.
function monthAfter(day: Day): Day {
  return addDays(inMonth(day, '01'), 31)
}

function monthBefore(day: Day): Day {
  return addDays(inMonth(day, '01'), -1)
}

/** The refusal of whatever needs an open pay cycle, while there is none. */
export function noOpenCycle(): Problem {
  return problem('UnprocessableEntity', 'There is no open pay cycle; try again when the next one has opened')
}
