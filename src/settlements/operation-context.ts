import type { ApiContext } from '../http/server/server.ts'
import type { Currency } from '../kernel/money.ts'

/** What the operations of settlements run on. */
export type SettlementContext = ApiContext & {
  /** Whether the bank reports money that arrives on the float's account in a currency. */
  reportsArrivals: (currency: Currency) => boolean
}
