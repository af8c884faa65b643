import type { BankAccount } from '../bank-accounts/rules.ts'
import type { Money } from '../money.ts'

/**
 * A way for money to reach members: a bank, a payment scheme, a file exchange. Every rail passes the same conformance
 * suite (test/rail-conformance.ts).
 *
 * A call that throws, or does not end in time, tells nothing: the payment may have been executed or not. Nobody assumes
 * either; it is asked for.
 */
export type Rail = {
  /** Under which its place in the reports is remembered: never given to another rail. */
  readonly name: string
  /** The most payments of one submission, and references of one question. A file takes thousands, a request perhaps one. */
  readonly paymentsMax: number
  /** The longest that one call may take; a rail gives up by itself when its `signal` says so. At most 25 s. */
  readonly callMsMax: number
  /**
   * Hands payments over. Repeating one under its reference is harmless: it stays one payment.
   * @returns what is known of each at once; a rail that hears back days later says `pending`. A payment that is left out
   * counts as not heard of
   * @throws when nobody knows what became of them, or when a reference comes back with another amount
   */
  submit(payments: Payment[], signal: AbortSignal): Promise<Report[]>
  /**
   * Asks what became of payments. `unknown` means for certain that the rail does not have it and never will from an
   * earlier submission that is still on its way; a rail that cannot be certain says `pending`.
   */
  ask(references: string[], signal: AbortSignal): Promise<Report[]>
  /**
   * What the rail reports by itself, in its order, at most `countMax`: statements, returns. Reading again from the same
   * place gives the same reports again.
   * @param after a cursor of an earlier call; null for the beginning
   * @returns the place to go on from; the given one when there was nothing new
   */
  reports(
    after: string | null,
    countMax: number,
    signal: AbortSignal,
  ): Promise<{ reports: Report[]; cursor: string | null }>
}

export type Payment = {
  /**
   * Our end-to-end reference: the withdrawal's id, 28 characters of [0-9a-z_]. ISO 20022 has room for 35; a rail with
   * less (Bacs: 18) keeps its own unambiguous short form.
   */
  reference: string
  amount: Money
  account: BankAccount
}

export type Outcome = 'pending' | 'paid' | 'failed' | 'returned' | 'unknown'

/** What a rail says about a payment. `returned` means that it had been paid. */
export type Report = {
  reference: string
  outcome: Outcome
  /** Why, in the rail's words, for `failed` and `returned`; without bank details and names, since partners read it. */
  reason: string | null
}

/** @throws when the call does, or after `msMax`, whatever the call still does then */
export async function within<T>(msMax: number, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const signal = AbortSignal.timeout(msMax)
  const tooLate = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error(`No answer within ${msMax} ms`)), { once: true })
  })
  return await Promise.race([call(signal), tooLate])
}
