import { named, operation } from '../http/operation.ts'
import { readers } from '../users/roles.ts'
import { Tiers, TiersWithTerms } from './schema.ts'
import { termsToWire } from './terms.ts'
import * as tiers from './tiers.ts'

const getTiers = operation({
  route: 'GET /v1/tiers',
  scope: 'members:read',
  roles: readers,
  sdk: 'tiers.list',
  tag: 'Members',
  summary: 'List the tiers',
  description: 'Lists the names that a member’s `tier` can have, in alphabetical order.',
  success: {
    description: 'All tiers.',
    schema: Tiers,
    representation: {
      description: 'each tier with its version, currency, fees and limits, as they apply to new intents.',
      schema: TiersWithTerms,
    },
  },
  async read(reader, { partner, prefersRepresentation }) {
    if (!prefersRepresentation) return { body: await tiers.listTiers(reader, partner.id) }
    const all = await tiers.listTerms(reader, partner.id)
    const body = all.map(tier => {
      const { name, version, currency } = tier
      return { name, version, currency, ...termsToWire(tier, currency) }
    })
    return { body }
  },
})

export const tierOperations = named({ getTiers })
