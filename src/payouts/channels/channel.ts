import type { Currency } from '../../kernel/money.ts'
import type { TaskContext } from '../../worker/task.ts'
import type { Payment, Report } from '../payments/payment.ts'

/**
 * A way for money to reach members: a bank's API, a file exchange, the simulated bank. Every channel passes the same
 * conformance suite (test/payouts/channel-conformance.ts).
 *
 * A call that throws or times out proves nothing: the payment may or may not have been executed. Its outcome is polled,
 * never assumed.
 */
export type Channel = {
  /** The rail that payouts are recorded under; never reused for another bank. */
  readonly name: string
  /** The key of the cursor up to which reports have been collected. */
  readonly feed: string
  /** The only currencies that it pays; `rest` for those that no other channel pays. */
  readonly currencies: readonly Currency[] | 'rest'
  /** Whether the bank answers days later. Such a channel is polled once a day. */
  readonly isSlow: boolean
  /** Banks keep the real time. The simulated bank keeps the clock of each partner, and has a view for some of them. */
  readonly time:
    | { kept: 'real' }
    | { kept: 'by partner'; inScope(context: Pick<TaskContext, 'now' | 'scope'>): Channel }
  /** What the worker does for it besides calling it. */
  readonly work: readonly BackgroundWork[]
  /** Largest number of payments per submission, and of references per poll. A file takes thousands, a request perhaps one. */
  readonly paymentsMax: number
  /** Timeout of a call, at most 25 s. A channel aborts a call when its `signal` fires. */
  readonly callMsMax: number
  /**
   * Submits payments. Idempotent by reference.
   * @returns what is known of each payment at once; `pending` if the bank reports days later. A payment without a report may
   * be left out
   * @throws if the outcome is unknown, or if a reference is reused with another amount
   */
  submit(payments: Payment[], signal: AbortSignal): Promise<Report[]>
  /**
   * Polls payments. `unknown` means that the bank does not have the payment and will not get it from an earlier submission
   * that is still in flight; a channel that cannot be certain says `pending`.
   */
  ask(references: string[], signal: AbortSignal): Promise<Report[]>
  /**
   * Collects at most `countMax` reports that the bank makes unasked (statements, returns), in order. Collecting again from a
   * cursor gives the same reports.
   * @param after a cursor of an earlier call; null for the beginning
   * @returns the reports and the next cursor; the given cursor if there was nothing new
   */
  collect(
    after: string | null,
    countMax: number,
    signal: AbortSignal,
  ): Promise<{ reports: Report[]; cursor: string | null }>
}

/** Work of a channel in one of the worker's tasks, which run every minute. Usually there is nothing to do. */
export type BackgroundWork = {
  readonly task: 'send-payout-batches' | 'read-bank-files' | 'reconcile-bank-accounts'
  run(context: Omit<TaskContext, 'scope'>): Promise<void>
}

/** @throws if the call does, or after `msMax`, even if the call is still running */
export async function within<T>(msMax: number, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(msMax)
  const tooLate = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error(`No answer within ${msMax} ms`)), { once: true })
  })
  return await Promise.race([call(signal), tooLate])
}
