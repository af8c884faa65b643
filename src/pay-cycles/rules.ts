import { type Problem, problem } from '../kernel/errors.ts'
import { addDays, type Day, daysBetween } from '../kernel/time.ts'
import type { CycleSchedule } from '../partners/partners.ts'

/** The schedule of a partner's pay cycles. */
export type Schedule = {
  every: CycleSchedule
  /**
   * The start date of any cycle. For `monthly`, only the day of the month counts (1 means calendar months). Ignored for
   * `semi_monthly`, whose cycles are the 1st to the 15th, and the 16th to the end of the month.
   */
  anchor: Day
}

/** First and last day of a cycle, inclusive. */
export type Span = { startDate: Day; endDate: Day }

/**
 * Returns the cycle that contains a day. The cycles of a schedule are contiguous: every day is in exactly one.
 * @throws if a monthly schedule is anchored on the 29th, 30th or 31st, which some months lack
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
      if (dayOfMonth > '28')
        throw new Error(`A monthly pay cycle must start on a day from 1 to 28, not on ${dayOfMonth}`)
      const month = day.slice(8) >= dayOfMonth ? day : monthBefore(day)
      return { startDate: inMonth(month, dayOfMonth), endDate: addDays(inMonth(monthAfter(month), dayOfMonth), -1) }
    }
    default:
      return every satisfies never
  }
}

/**
 * Returns the next cycle: it starts the day after the previous one and ends as scheduled. After a change of schedule, the
 * first cycle is shorter, so that there is neither a gap nor an overlap.
 */
export function cycleAfter(schedule: Schedule, previous: Span): Span {
  const startDate = addDays(previous.endDate, 1)
  return { startDate, endDate: cycleOf(schedule, startDate).endDate }
}

function spanOf(days: number, anchor: Day, day: Day): Span {
  // Rounds down, including for days before the anchor.
  const startDate = addDays(anchor, Math.floor(daysBetween(anchor, day) / days) * days)
  return { startDate, endDate: addDays(startDate, days - 1) }
}

function inMonth(month: Day, dayOfMonth: string): Day {
  return `${month.slice(0, 7)}-${dayOfMonth}`
}

// In any month, the 1st plus 31 days falls in the next month, and the day before the 1st in the previous one.
function monthAfter(day: Day): Day {
  return addDays(inMonth(day, '01'), 31)
}

function monthBefore(day: Day): Day {
  return addDays(inMonth(day, '01'), -1)
}

/** The refusal of an operation that needs an open pay cycle. */
export function noOpenCycle(): Problem {
  return problem('UnprocessableEntity', 'No pay cycle is open; try again when the next one has opened')
}
