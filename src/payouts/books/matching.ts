import type { Columns } from '../../database/database.ts'
import { inWords, type Money } from '../../kernel/money.ts'
import type { FinalOutcome } from '../../withdrawals/lifecycle.ts'
import type { GivenReasons, PaymentState } from '../formats/bank-files.ts'
import type { ExceptionKind } from './exceptions.ts'
import { nextStepOf } from './reasons.ts'

/** A payout as far as matching needs it. @property outcome the bank's latest answer; null if there is none yet */
export type KnownPayout = Columns<'payouts', 'netAmount' | 'currency' | 'outcome'> & {
  isRemoved: boolean
  /** Its batch has been delivered. */
  isSent: boolean
}

/** What a bank file says about one payment. `booking`: of an entry, which moves money. */
export type BankReport = { state: PaymentState; amount: Money | null; booking?: object } & GivenReasons

export type Match =
  /** The payout ends, or moves from paid to returned. */
  | { result: 'changed'; outcome: FinalOutcome }
  /** Reported before, or an intermediate state. */
  | { result: 'known' }
  | { result: 'exception'; kind: ExceptionKind; reason: string }

/** Decides what an answer means for a payout; undefined if the reference is not ours. */
export function match(payout: KnownPayout | undefined, { state, amount, booking, ...reasons }: BankReport): Match {
  if (payout === undefined) return exception('unmatched', `The bank reports a payment that is not ours as ${state}`)
  const { outcome, isRemoved, isSent } = payout
  if (!isSent || isRemoved)
    return exception('contradiction', `The bank reports a payment that we did not send as ${state}`)
  if (outcome === 'failed' && (state === 'accepted' || state === 'paid'))
    return exception('paid_after_give_back', `${accepted(state, booking !== undefined)}, ${butGivenBack}`)
  if (amount !== null && (amount.amount !== payout.netAmount || amount.currency !== payout.currency)) {
    const ours = inWords({ amount: payout.netAmount, currency: payout.currency })
    return exception('amount', `The bank reports ${inWords(amount)} as ${state}, but the payment is for ${ours}`)
  }
  switch (state) {
    case 'accepted':
    case 'pending':
      return { result: 'known' }
    case 'paid':
      return outcome === null ? { result: 'changed', outcome: 'paid' } : { result: 'known' }
    case 'failed':
      if (outcome === 'failed') return { result: 'known' }
      // A bank that has paid a payment rejects its copy.
      if (outcome !== null && nextStepOf(reasons) !== 'decide') return contradiction(state, outcome)
      break
    case 'returned':
      if (outcome === 'returned') return { result: 'known' }
      if (outcome === 'failed') return contradiction(state, outcome)
      break
    default:
      return state satisfies never
  }
  const next = nextStepOf(reasons)
  if (next === 'decide') {
    return exception(
      'duplicate',
      `The bank takes the payment for a duplicate and reports it as ${state}; find out whether it was paid`,
    )
  }
  if (next === 'decide_once_funded')
    return exception('float', 'The paying account lacked the money for the payment; top it up and decide')
  return { result: 'changed', outcome: state }
}

const butGivenBack = 'but its money was given back to the member; find out whether the bank pays it'

function accepted(state: 'accepted' | 'paid', isBooked: boolean): string {
  if (isBooked) return 'The bank debited the payment'
  return state === 'paid' ? 'The bank reports the payment as paid' : 'The bank accepts the payment'
}

function exception(kind: ExceptionKind, reason: string): Match {
  return { result: 'exception', kind, reason }
}

function contradiction(state: PaymentState, outcome: FinalOutcome): Match {
  return exception('contradiction', `The bank reports a payment as ${state}, after it had reported it as ${outcome}`)
}
