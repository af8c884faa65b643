import assert from 'node:assert/strict'
import type { Reader } from '../database/database.ts'
import { inWords } from '../kernel/money.ts'
import { type FeeSteps, feeSteps, lowestAmount, type Tier } from '../tiers/rules.ts'
import * as tiers from '../tiers/tiers.ts'
import * as intents from './intents.ts'
import type { Intent } from './rules.ts'

/** The rules that decide an intent, in the order in which they are applied. */
export const ruleNames = [
  'lower limit',
  'upper limit',
  'fixed part',
  'percentage part',
  'minimum fee',
  'maximum fee',
  'fee payer',
  'net',
] as const

/** One rule that was applied to an intent, its result, and the reason in words. */
type AppliedRule = { rule: (typeof ruleNames)[number]; amount: bigint; because: string }

export type Explanation = { intent: Intent; tier: tiers.TierVersion; rules: AppliedRule[] }

/**
 * Explains the fee and the net amount of an intent: the recorded intent and the tier version it was quoted by, through the
 * functions that decided it.
 * @throws Problem `NotFound`, also for another partner's intent
 */
export async function explain(
  db: Reader,
  { partnerId, intentId }: { partnerId: string; intentId: string },
): Promise<Explanation> {
  const intent = await intents.find(db, { partnerId, intentId })
  const [tier] = await tiers.listVersions(db, { partnerId, name: intent.tier, version: intent.tierVersion })
  assert(tier !== undefined)
  return { intent, tier, rules: rulesOf(tier, intent) }
}

/** Applies the rules of a tier, in their order, to a recorded intent. */
function rulesOf(tier: Tier, { grossAmount, netAmount, fee, employerFee }: Intent): AppliedRule[] {
  const steps = feeSteps(tier, grossAmount)
  // If the rules no longer give the quoted fee, any explanation would be made up.
  assert.equal(steps.fee, fee + employerFee)
  const words = (of: bigint) => inWords({ amount: of, currency: tier.currency })
  const lowest = lowestAmount(tier)
  return [
    {
      rule: 'lower limit',
      amount: lowest,
      because:
        lowest === tier.lowerLimit
          ? `The tier’s lower limit is ${words(lowest)}; ${words(grossAmount)} is not below it`
          : `The tier’s lower limit is ${words(tier.lowerLimit)}, but the amount must exceed the fee, which makes it ${words(lowest)}; ${words(grossAmount)} is not below it`,
    },
    {
      rule: 'upper limit',
      amount: tier.upperLimit,
      because: `The tier’s upper limit is ${words(tier.upperLimit)} per withdrawal; ${words(grossAmount)} is not above it`,
    },
    { rule: 'fixed part', amount: steps.fixedPart, because: `Every withdrawal costs ${words(steps.fixedPart)}` },
    {
      rule: 'percentage part',
      amount: steps.percentagePart,
      because: `${tier.feeBps} basis points of ${words(grossAmount)}, rounded down`,
    },
    ...boundsOf(tier, steps),
    {
      rule: 'fee payer',
      amount: fee,
      because:
        tier.feePayer === 'member'
          ? `The member pays the fee of ${words(fee)}`
          : `The employer pays the fee of ${words(employerFee)}; the member pays nothing`,
    },
    { rule: 'net', amount: netAmount, because: `${words(grossAmount)} less the member's fee of ${words(fee)}` },
  ]

  function boundsOf(
    { feeMin, feeMax }: Tier,
    { fixedPart, percentagePart, atLeast, fee: full }: FeeSteps,
  ): AppliedRule[] {
    const both = fixedPart + percentagePart
    const bounds: AppliedRule[] = []
    if (feeMin !== null) {
      const because =
        atLeast === both ? `${words(both)} is not below ${words(feeMin)}` : `${words(both)} is raised to it`
      bounds.push({ rule: 'minimum fee', amount: atLeast, because })
    }
    if (feeMax !== null) {
      const because =
        full === atLeast ? `${words(atLeast)} is not above ${words(feeMax)}` : `${words(atLeast)} is lowered to it`
      bounds.push({ rule: 'maximum fee', amount: full, because })
    }
    return bounds
  }
}
