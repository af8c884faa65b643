import { addDays, type Day, dayIn, instantAt } from '../../kernel/time.ts'
import { addBankingDays, type Calendar, nextBankingDay } from './calendar.ts'

/** How long a scheme takes, in banking days. */
export type LeadTime = {
  /** From the day on which the bank has the file to the batch's value date. */
  leadDays: number
  /** From the value date to the day on which the payee has the money. */
  creditDays: number
}

/** How long the payments of each scheme take. Instant payments have no calendar: see `atOnce`. */
export const leadTimes = {
  // The bank executes on the day of the file (D); the payee has the money on the next banking day at the latest.
  'sepa-credit-transfer': { leadDays: 0, creditDays: 1 },
  // Three working days: input (the file), processing (the value date), entry (the money).
  bacs: { leadDays: 1, creditDays: 1 },
  'faster-payments': { leadDays: 0, creditDays: 0 },
} as const satisfies Record<string, LeadTime>

/** When a batch is closed, its value date, and the day on which payees have the money. */
export type Schedule = { cutOffAt: Date; valueDate: Day; expectedOn: Day }

type CutOff = { now: Date; cutOff: string; timeZone: string; calendar: Calendar } & LeadTime

/**
 * Plans a batch that payments join at `now`. From the cut-off on, and on a closed day, the next banking day's cut-off applies.
 * @param cutOff local time, such as '15:00': the file must be with the bank before it
 * @param timeZone the bank's IANA time zone
 * @throws CalendarEnded
 */
export function cutOffOf({ now, cutOff, timeZone, calendar, leadDays, creditDays }: CutOff): Schedule {
  const today = dayIn(timeZone, now)
  const isTooLateToday = now >= instantAt(timeZone, today, cutOff)
  const inputDay = nextBankingDay(calendar, isTooLateToday ? addDays(today, 1) : today)
  const valueDate = addBankingDays(calendar, inputDay, leadDays)
  return {
    cutOffAt: instantAt(timeZone, inputDay, cutOff),
    valueDate,
    expectedOn: addBankingDays(calendar, valueDate, creditDays),
  }
}

/** Plans instant payments, which settle around the clock: the batch closes at `now`, and payees have the money the same day. */
export function atOnce({ now, timeZone }: { now: Date; timeZone: string }): Schedule {
  const today = dayIn(timeZone, now)
  return { cutOffAt: now, valueDate: today, expectedOn: today }
}
