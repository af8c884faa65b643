import { Type } from 'typebox'
import { strict } from '../contract/strict.ts'
import { CurrencyCode } from '../kernel/money.ts'
import { termFields } from './terms.ts'

const name = Type.String({ examples: ['Bronze'] })

export const Tiers = Type.Array(Type.Object({ name }, { title: 'Tier', ...strict }))

export const TiersWithTerms = Type.Array(
  Type.Object(
    {
      name,
      version: Type.Integer({ minimum: 1, description: 'Increases whenever the operator changes the terms.' }),
      currency: CurrencyCode,
      ...termFields,
    },
    { title: 'TierWithTerms', ...strict },
  ),
)
