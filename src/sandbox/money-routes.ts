import * as float from '../float/float.ts'
import type { App } from '../http/server/server.ts'
import { withIdempotency } from '../http/with-idempotency.ts'
import { problem } from '../kernel/errors.ts'
import { amountMax, fromWire, toWire } from '../kernel/money.ts'
import * as partners from '../partners/partners.ts'
import { type SandboxContext, sandboxOperation } from './operation.ts'
import { FloatFunded, MoneyToAdd, Paused } from './schema.ts'

/** Funds the float, and pauses and resumes withdrawals, as the operator does in production. */
export function moneyRoutes(app: App, { db }: SandboxContext): void {
  app.post(
    '/v1/sandbox/float',
    {
      config: { scope: 'pay:write' },
      schema: sandboxOperation({
        id: 'fundSandboxFloat',
        summary: 'Fund the float',
        description:
          'Adds money to the partner’s float in one of its currencies, as the operator does after a transfer.',
        body: MoneyToAdd,
        success: {
          status: 201,
          description: 'The float, and the part of it that is not on its way to members.',
          schema: FloatFunded,
        },
        problems: ['UnprocessableEntity'],
      }),
    },
    async (request, reply) =>
      withIdempotency(db, request, reply, async tx => {
        const { partner, body, now } = request
        const amount = fromWire(body.amount)
        const { currency } = amount
        const before = (await float.read(tx, partner.id)).find(each => each.currency === currency)
        if (before === undefined) {
          throw problem('UnprocessableEntity', `The partner has no tier in ${currency}, so nothing is paid out in it`)
        }
        if (before.float + amount.amount > BigInt(amountMax)) {
          throw problem('UnprocessableEntity', 'The float would be larger than a JSON number can be')
        }
        const { movementId } = await float.fund(tx, { partnerId: partner.id, amount, now })
        const after = (await float.read(tx, partner.id)).find(each => each.currency === currency) ?? before
        const details = { amount: body.amount, reference: null, movementId }
        return {
          status: 201,
          body: {
            float: toWire({ amount: after.float, currency }),
            free: toWire({ amount: after.free, currency }),
          },
          resourceId: currency,
          audit: { action: 'float.fund', details },
        }
      }),
  )

  for (const { verb, isPaused, summary, description } of pauses) {
    app.post(
      `/v1/sandbox/${verb}`,
      {
        config: { scope: 'pay:write' },
        schema: sandboxOperation({
          id: `${verb}Sandbox`,
          summary,
          description,
          success: { status: 200, description: 'Whether withdrawals are paused.', schema: Paused },
        }),
      },
      async (request, reply) =>
        withIdempotency(db, request, reply, async tx => {
          const { id } = request.partner
          const { before } = await (isPaused ? partners.pausePartner : partners.resumePartner)(tx, id)
          const details = { before: { paused: before.paused }, after: { paused: isPaused } }
          const audit = before.paused === isPaused ? undefined : ({ action: `partner.${verb}`, details } as const)
          return { status: 200, body: { paused: isPaused }, resourceId: id, audit }
        }),
    )
  }
}

const pauses = [
  {
    verb: 'pause',
    isPaused: true,
    summary: 'Pause withdrawals',
    description: 'Intents and completions are refused with `UnprocessableEntity`, and balances say so. Idempotent.',
  },
  { verb: 'resume', isPaused: false, summary: 'Resume withdrawals', description: 'Ends a pause. Idempotent.' },
] as const
