import { Type } from 'typebox'
import { CurrencyCode, toWire, WireMoney } from '../money.ts'
import type { Tier as CurrentTier } from './rules.ts'

const strict = { additionalProperties: false }
const name = Type.String({ examples: ['Bronze'] })
const MoneyOrNull = Type.Union([WireMoney, Type.Null()])
const CountOrNull = Type.Union([Type.Integer({ minimum: 1 }), Type.Null()])

/** The fees and limits of a tier. */
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

/** Returns a tier's terms in the wire shape of `termFields`. */
export function termsBody(tier: CurrentTier) {
  const { currency, feeFixed, feeBps, feeMin, feeMax, feePayer, lowerLimit, upperLimit } = tier
  const { withdrawalsPerDay, withdrawalsPerCycle } = tier
  const money = (amount: bigint) => toWire({ amount, currency })
  return {
    feeFixed: money(feeFixed),
    feeBps,
    feeMin: feeMin === null ? null : money(feeMin),
    feeMax: feeMax === null ? null : money(feeMax),
    feePayer,
    lowerLimit: money(lowerLimit),
    upperLimit: money(upperLimit),
    withdrawalsPerDay,
    withdrawalsPerCycle,
  }
}
