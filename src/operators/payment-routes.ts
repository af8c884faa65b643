import { Type } from 'typebox'
import { operation } from '../http/described-route.ts'
import { operatorOf, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { problem } from '../kernel/errors.ts'
import { fromWire } from '../kernel/money.ts'
import { decideOutcomeOfTwo } from '../payouts/books/decisions-of-two.ts'
import type { OutcomeByHand } from '../payouts/books/outcomes.ts'
import * as unsentBatches from '../payouts/books/unsent-batches.ts'
import { fileRailsOf, type Rail } from '../payouts/channels/rail.ts'
import { readHistory } from '../payouts/history.ts'
import { referencePattern } from '../payouts/payments/reference.ts'
import { line } from './partner-schema.ts'
import { PaymentOutcome, Payout, payoutOnWire, RemovedPayment } from './payout-schema.ts'

const tag = 'Payouts'
const config = { isForOperators: true } as const
const ofPayment = Type.Object({
  payment: Type.String({
    pattern: `^(${referencePattern}|w_.+)$`,
    maxLength: 255,
    description: 'The payment reference, or the withdrawal’s id.',
    examples: ['MMK7Q2MZ4TB5XJ3A'],
  }),
})

/** The payment of a withdrawal. */
export function paymentRoutes(app: App, { db }: ApiContext, { rails }: { rails: readonly Rail[] }): void {
  app.get(
    '/operator/v1/payouts/:payment',
    {
      config,
      schema: operation({
        id: 'getPayout',
        tag,
        summary: 'Get the payment of a withdrawal',
        description:
          'The payment with its batch, the bank’s answers about both, and the answers that did not fit. A withdrawal has a payment once it is submitted.',
        params: ofPayment,
        success: { status: 200, description: 'The payment.', schema: Payout },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => ({
        status: 200,
        body: payoutOnWire(await readHistory(reader, request.params.payment), fileRailsOf(rails)),
      })),
  )

  app.post(
    '/operator/v1/payouts/:payment/remove',
    {
      config,
      schema: operation({
        id: 'removePayment',
        tag,
        summary: 'Take a payment out of an unsent batch',
        description: 'The withdrawal fails, so the member gets the money back.',
        params: ofPayment,
        body: Type.Object(
          { reason: line(140, { description: 'The reason; the partner and the member read it.' }) },
          { title: 'PaymentRemoval', additionalProperties: false },
        ),
        success: { status: 200, description: 'The payment was removed.', schema: RemovedPayment },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { params, body, now } = request
        const removed = await unsentBatches.remove(tx, { payment: params.payment, reason: body.reason, now })
        const { partnerId, batchId, withdrawalId } = removed
        const details = { person: operatorOf(request).person, batchId, reason: body.reason }
        const change = { action: 'payout.remove', resourceId: withdrawalId, details } as const
        await recordOperatorChange(tx, request, { partnerId, change, now })
        return { status: 200, body: removed, resourceId: withdrawalId }
      }),
  )

  app.post(
    '/operator/v1/payouts/:payment/outcome',
    {
      config,
      schema: operation({
        id: 'decidePaymentOutcome',
        tag,
        summary: 'Record the outcome of a payment',
        description:
          'For a sent payment that no bank file answers: records the outcome that the bank states in its portal or on the phone. `failed` is refused while a debit that waits for a decision may be the payment, and while the bank may still pay. `returned` needs the `credit` that arrived; any shortfall is a charge. A later file that says the same changes nothing, and a file that contradicts it opens an exception. If two people had to approve the payment, or the operator bears a charge, the first request proposes the outcome, and the same request of another person carries it out.',
        params: ofPayment,
        body: PaymentOutcome,
        success: { status: 200, description: 'The payment.', schema: Payout },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { params, body, now } = request
        const { note, ...given } = body
        const decided = outcomeOf(given)
        const { kind, person } = operatorOf(request)
        const by = { person, isKey: kind === 'operator_key' }
        const asked = { payment: params.payment, by, note, now, ...decided }
        const { partnerId, withdrawalId, reference, done } = await decideOutcomeOfTwo(tx, asked)
        const details = { person, note, ...given, ...(done === 'decided' ? {} : { isProposed: true }) }
        const change = { action: 'payout.outcome', resourceId: withdrawalId, details } as const
        if (done !== 'repeated') await recordOperatorChange(tx, request, { partnerId, change, now })
        return {
          status: 200,
          body: payoutOnWire(await readHistory(tx, reference), fileRailsOf(rails)),
          resourceId: withdrawalId,
        }
      }),
  )
}

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
