import { Type } from 'typebox'
import { named, operationsOn } from '../http/operation.ts'
import { problem } from '../kernel/errors.ts'
import { fromWire } from '../kernel/money.ts'
import { namedObject } from '../kernel/schemas.ts'
import { decideOutcomeOfTwo } from '../payouts/books/decisions-of-two.ts'
import type { OutcomeByHand } from '../payouts/books/outcomes.ts'
import * as unsentBatches from '../payouts/books/unsent-batches.ts'
import { fileRailsOf } from '../payouts/channels/rail.ts'
import { readHistory } from '../payouts/history.ts'
import { referencePattern } from '../payouts/payments/reference.ts'
import { deciderOf } from './decider.ts'
import type { RailsContext } from './operation-context.ts'
import { line } from './partner-schema.ts'
import { PaymentOutcome, Payout, payoutView, RemovedPayment } from './payout-schema.ts'

const operation = operationsOn<RailsContext>().operationWith({ tag: 'Payouts', isForOperators: true })

const ofPayment = Type.Object({
  payment: Type.String({
    pattern: `^(${referencePattern}|w_.+)$`,
    maxLength: 255,
    description: 'The payment reference, or the withdrawal’s id.',
    examples: ['MMK7Q2MZ4TB5XJ3A'],
  }),
})

const getPayout = operation({
  route: 'GET /operator/v1/payouts/:payment',
  summary: 'Get the payment of a withdrawal',
  description:
    'The payment with its batch, the bank’s answers about both, and the answers that did not fit. A withdrawal has a payment once it is submitted.',
  params: ofPayment,
  success: { description: 'The payment.', schema: Payout },
  async read(reader, { params, context }) {
    return {
      body: payoutView(await readHistory(reader, params.payment), fileRailsOf(context.rails)),
    }
  },
})

const removePayment = operation({
  route: 'POST /operator/v1/payouts/:payment/remove',
  summary: 'Take a payment out of an unsent batch',
  description: 'The withdrawal fails, so the member gets the money back.',
  params: ofPayment,
  body: namedObject('PaymentRemoval', {
    reason: line(140, { description: 'The reason; the partner and the member read it.' }),
  }),
  success: { description: 'The payment was removed.', schema: RemovedPayment },
  async write(tx, { operator, params, body, now }) {
    const removed = await unsentBatches.remove(tx, { payment: params.payment, reason: body.reason, now })
    const { partnerId, batchId, withdrawalId } = removed
    const details = { person: operator.person, batchId, reason: body.reason }
    const audit = { action: 'payout.remove', details, partnerId } as const
    return { body: removed, resourceId: withdrawalId, audit }
  },
})

const decidePaymentOutcome = operation({
  route: 'POST /operator/v1/payouts/:payment/outcome',
  summary: 'Record the outcome of a payment',
  description:
    'For a sent payment that no bank file answers: records the outcome that the bank states in its portal or on the phone. `failed` is refused while a debit that waits for a decision may be the payment, and while the bank may still pay. `returned` needs the `credit` that arrived; any shortfall is a charge. A later file that says the same changes nothing, and a file that contradicts it opens an exception. If two people had to approve the payment, or the operator bears a charge, the first request proposes the outcome, and the same request of another person carries it out.',
  params: ofPayment,
  body: PaymentOutcome,
  success: { description: 'The payment.', schema: Payout },
  async write(tx, { operator, params, body, now, context }) {
    const { note, ...given } = body
    const decided = outcomeOf(given)
    const asked = { payment: params.payment, by: deciderOf(operator), note, now, ...decided }
    const { partnerId, withdrawalId, reference, done } = await decideOutcomeOfTwo(tx, asked)
    const details = { person: operator.person, note, ...given, ...(done === 'decided' ? {} : { isProposed: true }) }
    const audit = { action: 'payout.outcome', details, partnerId } as const
    return {
      body: payoutView(await readHistory(tx, reference), fileRailsOf(context.rails)),
      resourceId: withdrawalId,
      audit: done === 'repeated' ? undefined : audit,
    }
  },
})

/** The payment of a withdrawal. */
export const paymentOperations = named({ getPayout, removePayment, decidePaymentOutcome })

/** @throws Problem `BodyValidation` if the credit is missing, or is given for a payment that was not returned */
function outcomeOf({ outcome, credit, borneBy }: Omit<PaymentOutcome, 'note'>): OutcomeByHand {
  if (outcome === 'returned') {
    if (credit === undefined) throw problem('BodyValidation', 'returned needs the credit', { path: 'credit' })
    return { outcome, credit: { ...credit, amount: fromWire(credit.amount) }, borneBy }
  }
  for (const [path, value] of Object.entries({ credit, borneBy }))
    if (value !== undefined) throw problem('BodyValidation', `${path} does not belong to ${outcome}`, { path })
  return { outcome }
}
