import { Type } from 'typebox'
import { operation } from '../http/operation.ts'
import { operatorOf, recordOperatorChange } from '../http/operator-change.ts'
import type { ApiContext, App } from '../http/server.ts'
import { read, withIdempotency } from '../http/with-idempotency.ts'
import { readHistory } from '../payouts/history.ts'
import * as unsentBatches from '../payouts/rails/file/unsent-batches.ts'
import { referencePattern } from '../payouts/reference.ts'
import { line } from './partner-schema.ts'
import { Payout, payoutOnWire, RemovedPayment } from './payout-schema.ts'

const tag = 'Payouts'
const config = { isForOperators: true } as const
const ofPayment = Type.Object({
  payment: Type.String({
    pattern: `^(${referencePattern}|w_.+)$`,
    maxLength: 255,
    description: 'The payment reference, or the withdrawal’s id.',
    examples: ['OWK7Q2MZ4TB5XJ3A'],
  }),
})

/** The payment of a withdrawal. */
export function paymentRoutes(app: App, { db }: ApiContext): void {
  app.get(
    '/admin/v1/payouts/:payment',
    {
      config,
      schema: operation({
        id: 'getPayout',
        tag,
        summary: 'Get the payment of a withdrawal',
        description:
          'With its batch, what the bank said about both, and the answers that did not fit. A withdrawal has a payment once it is submitted.',
        params: ofPayment,
        success: { status: 200, description: 'The payment.', schema: Payout },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => ({
        status: 200,
        body: payoutOnWire(await readHistory(reader, request.params.payment)),
      })),
  )

  app.post(
    '/admin/v1/payouts/:payment/remove',
    {
      config,
      schema: operation({
        id: 'removePayment',
        tag,
        summary: 'Take a payment out of an unsent batch',
        description: 'The withdrawal fails, so the member has the money back.',
        params: ofPayment,
        body: Type.Object(
          { reason: line(140, { description: 'Why; the partner and the member read it.' }) },
          { title: 'PaymentRemoval', additionalProperties: false },
        ),
        success: { status: 200, description: 'It was taken out.', schema: RemovedPayment },
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
}
