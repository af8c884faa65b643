import { Type } from 'typebox'
import { issue, problemOf } from '../errors.ts'
import { once } from '../http/once.ts'
import { operation } from '../http/operation.ts'
import type { App, Edge } from '../http/server.ts'
import { Id } from '../ids.ts'
import { fromWire, SignedMoney } from '../money.ts'
import * as payRuns from './pay-runs.ts'

const strict = { additionalProperties: false }

const NewPayRun = Type.Object(
  {
    payDetails: Type.Array(Type.Object({ memberId: Id('member'), money: SignedMoney }, strict), {
      minItems: 1,
      maxItems: 10_000,
      description:
        'What each member has earned. A negative amount corrects an earlier pay run. A member may stand on several lines.',
    }),
  },
  { title: 'NewPayRun', ...strict },
)

const PayRun = Type.Object(
  {
    id: Id('payRun'),
    payCycleId: Id('payCycle'),
    status: Type.Enum(['Scheduled', 'Available', 'Reverted'], { type: 'string' }),
    scheduledFor: Type.String({
      format: 'date-time',
      description: 'When the money becomes, or became, available (ISO 8601, UTC).',
    }),
  },
  { title: 'PayRun', ...strict },
)

export function payRunRoutes(app: App, { db }: Edge): void {
  app.post(
    '/v1/pay/run',
    {
      config: { scope: 'pay:write' },
      schema: operation({
        id: 'uploadPayRun',
        tag: 'Pay runs',
        summary: 'Upload a pay run',
        description:
          'Makes pay available to members in the open pay cycle, after the partner’s grace period. All lines or none. Send an idempotency key, so that a repeated upload does not pay twice.',
        body: NewPayRun,
        success: { status: 201, description: 'The pay run.', schema: PayRun },
        problems: ['UnprocessableEntity', 'PayRunMemberNotEligible'],
      }),
    },
    async (request, reply) =>
      once(db, request, reply, async tx => {
        const { partner, now, body } = request
        const lines = body.payDetails.map(({ memberId, money }) => ({ memberId, ...fromWire(money) }))
        const zeros = lines.flatMap(({ amount }, index) => (amount === 0n ? [`payDetails.${index}.money.amount`] : []))
        if (zeros.length > 0) {
          throw problemOf(
            zeros.map(path => ({
              name: 'BodyValidation',
              issue: issue('BodyValidation', `${path} must not be zero`, { path }),
            })),
          )
        }
        const payRun = await payRuns.create(tx, { partner, lines, now })
        return {
          status: 201,
          body: { ...payRun, scheduledFor: payRun.scheduledFor.toISOString() },
          resourceId: payRun.id,
        }
      }),
  )
}
