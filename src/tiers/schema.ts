import { Type } from 'typebox'
import { CurrencyCode } from '../kernel/money.ts'
import { namedObject } from '../kernel/schemas.ts'
import { termFields } from './terms.ts'

const name = Type.String({ examples: ['Bronze'] })

export const Tiers = Type.Array(namedObject('Tier', { name }))

export const TiersWithTerms = Type.Array(
  namedObject('TierWithTerms', {
    name,
    version: Type.Integer({ minimum: 1, description: 'Increases whenever the operator changes the terms.' }),
    currency: CurrencyCode,
    ...termFields,
  }),
)
