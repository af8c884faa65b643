import type { Currency } from '../../kernel/money.ts'
import type { TaskContext } from '../../worker/task.ts'
import type { Payment, Report } from '../payments/payment.ts'

/**
 * A way for money to reach members: a bank, a payment scheme, a file exchange. Every rail passes the same conformance
 * suite (test/payouts/rail-conformance.ts).
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

/** @throws if the call does, or after `msMax`, even if the call is still running */
export async function within<T>(msMax: number, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(msMax)
  const tooLate = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error(`No answer within ${msMax} ms`)), { once: true })
  })
  return await Promise.race([call(signal), tooLate])
}
