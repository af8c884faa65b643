import type { Currency } from '../../kernel/money.ts'
import type { Day } from '../../kernel/time.ts'
import type { Calendar } from '../calendars/calendar.ts'
import type { Schedule } from '../calendars/cut-off.ts'
import type { Delivery } from '../delivery/delivery.ts'
import type { Debtor } from '../formats/bank-files.ts'
import type { FileFormat } from '../formats/format.ts'
import type { AutomaticApproval } from './automatic-approval.ts'

/** One configured rail of files. */
export type FileRailSettings = {
  name: string
  currency: Currency
  format: FileFormat
  /** The paying accounts by partner; `default` pays for all others. */
  debtors: Readonly<Record<string, Debtor>> & { readonly default: Debtor }
  /** Whether payments are instant if their tier does not say. */
  isInstant: boolean
  /** Whether the bank makes instant payments from these files. If not, a tier that asks for them gets standard ones. */
  canBeInstant: boolean
  /** The bank's. */
  timeZone: string
  /** Local time, such as '15:00', at which batches of standard payments are closed. */
  cutOff: string
  /** The days on which the bank makes standard payments; null for every day. */
  calendar: Calendar | null
  /** Plans the batch that payments join at an instant. @param isInstant by default, as for payments whose tier does not say */
  schedule(now: Date, isInstant?: boolean): Schedule
  /** With null, two people approve every batch. */
  automatic: AutomaticApproval | null
  /**
   * For a bank that does not confirm payments: whether the payments of a value date count as paid today, unless the bank has said
   * otherwise. Null for a bank that confirms payments.
   */
  countsAsPaid: ((valueDate: Day, today: Day) => boolean) | null
  /** Opens the connection to the bank. Null if an operator exports and imports the files. */
  delivery: (() => Promise<Delivery>) | null
}
