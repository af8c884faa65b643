import type { ApiContext } from '../http/server/server.ts'
import type { Currency } from '../kernel/money.ts'
import type { withdrawalBatches } from './batches.ts'
import type { Banks } from './facts.ts'

/** What the operations of withdrawals run on. */
export type WithdrawalContext = ApiContext & {
  /** The two hot operations, each coalesced with those of concurrent calls. */
  batches: ReturnType<typeof withdrawalBatches>
  banks: Banks
  /** Writes the name of an account holder as the bank that pays the currency gets it. */
  payeeName: (currency: Currency, accountHolder: string) => string
}
