import assert from 'node:assert/strict'
import type { Reader } from '../database/database.ts'
import { inWords } from '../money.ts'
import { type FeeSteps, feeSteps, lowestAmount, type Tier } from '../tiers/rules.ts'
import * as tiers from '../tiers/tiers.ts'
import * as intents from './intents.ts'
import type { Intent } from './rules.ts'

/** One rule that was applied to an intent, what it gave, and in words why. */
type AppliedRule = {
  rule:
    | 'lower limit'
    | 'upper limit'
    | 'fixed part'
    | 'percentage part'
    | 'minimum fee'
    | 'maximum fee'
    | 'fee payer'
    | 'net'
  amount: bigint
  because: string
}

export type Explanation = { intent: Intent; tier: Tier & { since: Date }; rules: AppliedRule[] }

/**
 * How an intent came to its fee and net amount: from the intent as it was recorded and the version of the tier that held
 * then, by the functions that decided it.
 * @throws Problem `NotFound`, also for another partner's intent
 */
export async function explain(
  db: Reader,
  { partnerId, intentId }: { partnerId: string; intentId: string },
): Promise<Explanation> {
  const intent = await intents.find(db, { partnerId, intentId })
  const tier = await tiers.findTierVersion(db, { partnerId, name: intent.tier, version: intent.tierVersion })
  assert(tier !== undefined)
  return { intent, tier, rules: rulesOf(tier, intent) }
}

/** The rules of a tier in the order in which they are applied, with what each gave for an intent. */
function rulesOf(tier: Tier, { grossAmount, netAmount, fee, employerFee }: Intent): AppliedRule[] {
  const steps = feeSteps(tier, grossAmount)
  // What was quoted is what the rules give; anything else is a fault of ours that nobody should be told stories about.
  assert.equal(steps.fee, fee + employerFee)
  const words = (of: bigint) => inWords({ amount: of, currency: tier.currency })
  const lowest = lowestAmount(tier)
  return [
    {
      rule: 'lower limit',
      amount: lowest,
      because:
        lowest === tier.lowerLimit
          ? `The tier lets no less than ${words(lowest)} be withdrawn; ${words(grossAmount)} is not less`
          : `The tier's lower limit is ${words(tier.lowerLimit)}, but something must be left after the fee; ${words(grossAmount)} is not less than ${words(lowest)}`,
    },
    {
      rule: 'upper limit',
      amount: tier.upperLimit,
      because: `The tier lets no more than ${words(tier.upperLimit)} be withdrawn at once; ${words(grossAmount)} is not more`,
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
