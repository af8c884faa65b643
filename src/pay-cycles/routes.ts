import { Type } from 'typebox'
import { pageFields, pageOf, pageQuery, totalField } from '../http/list.ts'
import { read } from '../http/once.ts'
import { operation } from '../http/operation.ts'
import type { App, Edge } from '../http/server.ts'
import { Id } from '../ids.ts'
import * as payCycles from './pay-cycles.ts'

const tag = 'Pay cycles'
const Status = Type.Union([Type.Literal('Open'), Type.Literal('Closed')])
const Day = Type.String({ format: 'date', examples: ['2026-03-31'] })

const PayCycle = Type.Object(
  { id: Id('payCycle'), startDate: Day, endDate: Day, status: Status },
  { title: 'PayCycle', additionalProperties: false },
)

export function payCycleRoutes(app: App, { db }: Edge): void {
  app.get(
    '/v1/pay/cycles',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getPayCycles',
        tag,
        summary: 'List pay cycles',
        description: 'Newest first.',
        query: Type.Object(
          { statuses: Type.Optional(Type.Array(Status, { maxItems: 2 })), ...pageQuery },
          { additionalProperties: false },
        ),
        success: {
          status: 200,
          description: 'One page of pay cycles.',
          schema: Type.Object(
            { payCycles: Type.Array(PayCycle), ...totalField, ...pageFields },
            { title: 'PayCycles', additionalProperties: false },
          ),
        },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, query } = request
        const page = pageOf(query)
        const found = await payCycles.list(reader, { partnerId: partner.id, statuses: query.statuses ?? [], page })
        return { status: 200, body: { ...found, ...page } }
      }),
  )

  app.get(
    '/v1/pay/cycles/:payCycleId',
    {
      config: { scope: 'pay:read' },
      schema: operation({
        id: 'getPayCycle',
        tag,
        summary: 'Get a pay cycle',
        params: Type.Object({ payCycleId: Id('payCycle') }),
        success: { status: 200, description: 'The pay cycle as it stands.', schema: PayCycle },
        problems: ['NotFound'],
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const { partner, params } = request
        return {
          status: 200,
          body: await payCycles.find(reader, { partnerId: partner.id, payCycleId: params.payCycleId }),
        }
      }),
  )
}
