import { addDays, type Day } from '../../../kernel/time.ts'
import { addBankingDays, type Calendar } from '../../calendars/calendar.ts'
import { leadTimes } from '../../calendars/cut-off.ts'
import type { PaymentState } from '../bank-files.ts'
import type { UkScheme } from '../uk-payments.ts'

/** Returns the day on which payees have the money of a batch. For Bacs, that is the entry day, one day after processing. */
export function entryDayOf(scheme: UkScheme, processingDay: Day, calendar: Calendar): Day {
  return addBankingDays(calendar, processingDay, leadTimes[scheme].creditDays)
}

/**
 * Returns the state of a payment in a batch that the bank has taken, unless an advice says otherwise. Neither scheme confirms payments.
 * Bacs credits payees at the start of the entry day. Faster Payments settle within hours, so failures have been reported by the day after.
 * @param today in Europe/London
 */
export function stateWithoutAdvice(
  scheme: UkScheme,
  processingDay: Day,
  { today, calendar }: { today: Day; calendar: Calendar },
): PaymentState & ('pending' | 'paid') {
  const paidFrom = scheme === 'bacs' ? entryDayOf(scheme, processingDay, calendar) : addDays(processingDay, 1)
  return today >= paidFrom ? 'paid' : 'pending'
}
