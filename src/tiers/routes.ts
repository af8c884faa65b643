import { Type } from 'typebox'
import { read } from '../http/once.ts'
import { operation } from '../http/operation.ts'
import type { App, Edge } from '../http/server.ts'
import * as tiers from './tiers.ts'

const Tiers = Type.Array(
  Type.Object({ name: Type.String({ examples: ['Bronze'] }) }, { title: 'Tier', additionalProperties: false }),
)

export function tierRoutes(app: App, { db }: Edge): void {
  app.get(
    '/v1/tiers',
    {
      config: { scope: 'members:read' },
      schema: operation({
        id: 'getTiers',
        tag: 'Members',
        summary: 'List the tiers',
        description: 'The names that a member’s `tier` can have, alphabetically.',
        success: { status: 200, description: 'All tiers.', schema: Tiers },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => ({
        status: 200,
        body: await tiers.listTiers(reader, request.partner.id),
      })),
  )
}
