import type { BankAccount } from '../bank-accounts/rules.ts'
import type { Currency, Money } from '../kernel/money.ts'
import type { Restriction } from '../members/restrictions.ts'
import type { PayoutSpeed } from '../tiers/rules.ts'
import type { FinalOutcome } from '../withdrawals/lifecycle.ts'
import type { TaskContext } from '../worker/task.ts'

/**
 * A way for money to reach members: a bank, a payment scheme, a file exchange. Every rail passes the same conformance
 * suite (test/rail-conformance.ts).
 *
 * A call that throws or times out says nothing: the payment may or may not have been executed. The outcome is polled, never
 * assumed.
 */
export type Rail = {
  /** What payouts are recorded under; never reuse it for another rail. */
  readonly name: string
  /** The key of its cursor in the reports, if that is not its name. */
  readonly feed?: string
  /** The only currencies that it pays. Without it, all those that no other rail pays. */
  readonly currencies?: readonly Currency[]
  /** Answers days later, through `reports`. Such a rail is polled once a day. */
  readonly isSlow?: true
  /** The view of some partners, for a rail that follows their clocks. Without it, the rail keeps the real time. */
  inScope?(context: Pick<TaskContext, 'now' | 'scope'>): Rail
  /** For a rail of files: what carries them to the bank and back. */
  readonly files?: {
    send(context: Omit<TaskContext, 'scope'>): Promise<void>
    receive(context: Omit<TaskContext, 'scope'>): Promise<void>
    reconcile(context: Omit<TaskContext, 'scope'>): Promise<void>
  }
  /** For a rail whose payments may wait for approval and then go one by one: lets those be submitted that wait no longer. */
  releaseApproved?(context: Omit<TaskContext, 'scope'>): Promise<void>
  /** For a rail whose bank sends notifications: asks for what was missed. Called every minute; usually does nothing. */
  catchUp?(context: Omit<TaskContext, 'scope'>): Promise<void>
  /** Largest number of payments per submission, and of references per poll. A file takes thousands, a request perhaps one. */
  readonly paymentsMax: number
  /** Time-out of a call, at most 25 s. A rail aborts a call when its `signal` fires. */
  readonly callMsMax: number
  /**
   * Submits payments. Idempotent by reference.
   * @returns what is known of each at once; a rail that reports days later says `pending`. A payment that is left out has
   * no report
   * @throws if their outcome is unknown, or if a reference is reused with another amount
   */
  submit(payments: Payment[], signal: AbortSignal): Promise<Report[]>
  /**
   * Polls payments. `unknown` means that the rail does not have the payment and will not get it from an earlier submission
   * that is still in flight; a rail that cannot be certain says `pending`.
   */
  ask(references: string[], signal: AbortSignal): Promise<Report[]>
  /**
   * Reads what the rail reports unasked (statements, returns), in its order, at most `countMax`. Reading again from a cursor
   * gives the same reports.
   * @param after a cursor of an earlier call; null for the beginning
   * @returns the reports and the next cursor; the given one if there was nothing new
   */
  reports(
    after: string | null,
    countMax: number,
    signal: AbortSignal,
  ): Promise<{ reports: Report[]; cursor: string | null }>
}

export type Payment = {
  /** On whose behalf it is made. */
  partnerId: string
  withdrawalId: string
  /** Our end-to-end reference, as `newReference` makes it. */
  reference: string
  amount: Money
  account: BankAccount
  /** Without it, the rail decides. */
  speed?: PayoutSpeed
}

export type Outcome = FinalOutcome | 'pending' | 'unknown'

/** A rail’s report about a payment. `returned` means that it had been paid. */
export type Report = {
  reference: string
  outcome: Outcome
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

/** @throws if the call does, or after `msMax`, even if the call is still running */
export async function within<T>(msMax: number, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(msMax)
  const tooLate = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error(`No answer within ${msMax} ms`)), { once: true })
  })
  return await Promise.race([call(signal), tooLate])
}
