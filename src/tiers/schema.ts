import { Type } from 'typebox'
import { strict } from '../contract/strict.ts'
import { CurrencyCode, WireMoney } from '../kernel/money.ts'
import { payoutSpeeds } from './rules.ts'

const name = Type.String({ examples: ['Bronze'] })
const MoneyOrNull = Type.Union([WireMoney, Type.Null()])
const CountOrNull = Type.Union([Type.Integer({ minimum: 1 }), Type.Null()])

/** The fees and limits of a tier, as `termsToWire` returns them. */
export const termFields = {
  feeFixed: WireMoney,
  feeBps: Type.Integer({
    minimum: 0,
    maximum: 9_999,
    description: 'The percentage part of the fee, in basis points of the amount.',
  }),
  feeMin: MoneyOrNull,
  feeMax: MoneyOrNull,
  feePayer: Type.Enum(['member', 'employer'], { type: 'string' }),
  lowerLimit: WireMoney,
  upperLimit: WireMoney,
  withdrawalsPerDay: CountOrNull,
  withdrawalsPerCycle: CountOrNull,
  payoutSpeed: Type.Union([Type.Enum([...payoutSpeeds], { type: 'string' }), Type.Null()], {
    description: 'Whether payouts are sent in the bank’s next batch or instantly. Null for the setting of the bank.',
  }),
}

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
