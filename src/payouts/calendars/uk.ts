import type { Day } from '../../kernel/time.ts'
import type { Calendar } from './calendar.ts'

/**
 * Bank holidays of England and Wales, on which Bacs does not work. Weekends are not listed. The government announces them about two years
 * ahead, and occasionally an extra one at a few days' notice, which the operator adds (`withOverride`).
 *
 * To extend: add the days of the next year and move `validUntil` to its end, never further than the published list.
 * Source: gov.uk, "UK bank holidays"
 */
const bankHolidays: readonly Day[] = [
  // New Year, Good Friday, Easter Monday, early May, spring, summer, Christmas, Boxing Day.
  ...['2025-01-01', '2025-04-18', '2025-04-21', '2025-05-05', '2025-05-26', '2025-08-25', '2025-12-25', '2025-12-26'],
  // Boxing Day is a Saturday.
  ...['2026-01-01', '2026-04-03', '2026-04-06', '2026-05-04', '2026-05-25', '2026-08-31', '2026-12-25', '2026-12-28'],
  // Christmas is a Saturday and Boxing Day a Sunday.
  ...['2027-01-01', '2027-03-26', '2027-03-29', '2027-05-03', '2027-05-31', '2027-08-30', '2027-12-27', '2027-12-28'],
  // New Year is a Saturday.
  ...['2028-01-03', '2028-04-14', '2028-04-17', '2028-05-01', '2028-05-29', '2028-08-28', '2028-12-25', '2028-12-26'],
]

/** The working days of Bacs: Monday to Friday except bank holidays of England and Wales. */
export const uk: Calendar = ukCalendarOf({
  bankHolidays,
  validFrom: '2025-01-01',
  validUntil: '2028-12-31',
})

type BankHolidays = { bankHolidays: readonly Day[]; validFrom: Day; validUntil: Day }

/** A calendar from a published list of bank holidays. */
export function ukCalendarOf({ bankHolidays, validFrom, validUntil }: BankHolidays): Calendar {
  const closed = new Set(bankHolidays)
  return { name: 'UK bank holiday', validFrom, validUntil, isHoliday: day => closed.has(day) }
}
