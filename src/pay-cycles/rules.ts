import { addDays, type Day } from '../time.ts'

/** First and last day of the calendar month that a day is in. */
export function calendarMonth(day: Day): { startDate: Day; endDate: Day } {
  const startDate = `${day.slice(0, 7)}-01`
  // The 1st plus 31 days is in the next month, whatever the month.
  const nextMonth = `${addDays(startDate, 31).slice(0, 7)}-01`
  return { startDate, endDate: addDays(nextMonth, -1) }
}
