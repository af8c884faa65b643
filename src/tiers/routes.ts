import { prefersRepresentation, representationApplied } from '../contract/prefer.ts'
import { operation } from '../http/described-route.ts'
import type { ApiContext, App } from '../http/server/server.ts'
import { read } from '../http/with-idempotency.ts'
import { termsToWire } from './rules.ts'
import { Tiers, TiersWithTerms } from './schema.ts'
import * as tiers from './tiers.ts'

export function tierRoutes(app: App, { db }: ApiContext): void {
  app.get(
    '/v1/tiers',
    {
      config: { scope: 'members:read' },
      schema: operation({
        id: 'getTiers',
        tag: 'Members',
        summary: 'List the tiers',
        description: 'Lists the names that a member’s `tier` can have, in alphabetical order.',
        success: {
          status: 200,
          description: 'All tiers.',
          schema: Tiers,
          representation: {
            description: 'each tier with its version, currency, fees and limits, as they apply to new intents.',
            schema: TiersWithTerms,
          },
        },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const partnerId = request.partner.id
        if (!prefersRepresentation(request)) return { status: 200, body: await tiers.listTiers(reader, partnerId) }
        const all = await tiers.listTerms(reader, partnerId)
        const body = all.map(tier => ({
          ...{ name: tier.name, version: tier.version, currency: tier.currency },
          ...termsToWire(tier, tier.currency),
        }))
        return { status: 200, body, headers: representationApplied }
      }),
  )
}
