import type { BankAccount } from '../../bank-accounts/rules.ts'
import type { Money } from '../../kernel/money.ts'
import type { Restriction } from '../../members/restrictions.ts'
import type { PayoutSpeed } from '../../tiers/terms.ts'
import type { FinalOutcome } from '../../withdrawals/lifecycle.ts'

export type Payment = {
  /** On whose behalf it is made. */
  partnerId: string
  withdrawalId: string
  /** Our end-to-end reference, as `newReference` makes it. */
  reference: string
  /** What the account receives. */
  netAmount: Money
  account: BankAccount
  /** Without it, the rail decides. */
  speed?: PayoutSpeed
}

export type ReportedOutcome = FinalOutcome | 'pending' | 'unknown'

/** A rail’s report about a payment. `returned` means that it had been paid. */
export type Report = {
  reference: string
  outcome: ReportedOutcome
  /** Why it failed or was returned, in the rail's words. Without bank details and names, since partners read it. */
  reason: string | null
  /** What follows from the reason for the member; none by default. The reason must be about the member, not about a file. */
  restriction?: Restriction
  /**
   * The last decision before this report by which the payment is recovered from the member (`recover`). A report of `paid` whose
   * decision has not been carried out does so.
   */
  recoveryId?: string
}

/** A report as a rail keeps it. */
export type StoredReport = Pick<Report, 'reference' | 'outcome' | 'reason'> & {
  restriction: Restriction | null
  recoveryId?: string | null
}

export function toReport({ reference, outcome, reason, restriction, recoveryId = null }: StoredReport): Report {
  return {
    ...{ reference, outcome, reason },
    ...(restriction === null ? {} : { restriction }),
    ...(recoveryId === null ? {} : { recoveryId }),
  }
}
