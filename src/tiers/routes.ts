import { operation } from '../http/operation.ts'
import { prefersRepresentation, representationApplied } from '../http/prefer.ts'
import type { ApiContext, App } from '../http/server.ts'
import { read } from '../http/with-idempotency.ts'
import { Tiers, TiersWithTerms, termsBody } from './schema.ts'
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
        description: 'The names that a member’s `tier` can have, alphabetically.',
        success: {
          status: 200,
          description: 'All tiers.',
          schema: Tiers,
          representation: {
            description: 'their currency, fees and limits too, as they hold for new intents.',
            schema: TiersWithTerms,
          },
        },
      }),
    },
    async (request, reply) =>
      read(db, request, reply, async reader => {
        const partnerId = request.partner.id
        if (!prefersRepresentation(request)) return { status: 200, body: await tiers.listTiers(reader, partnerId) }
        const all = await tiers.listWithTerms(reader, partnerId)
        const body = all.map(tier => ({
          ...{ name: tier.name, version: tier.version, currency: tier.currency },
          ...termsBody(tier),
        }))
        return { status: 200, body, headers: representationApplied }
      }),
  )
}
