import { type Currency, shareRoundedDown, toWire } from '../money.ts'

/** Who bears the fee of a withdrawal: it is taken from the member's pay, or charged to the employer. */
type FeePayer = 'member' | 'employer'

/** One version of a tier: everything that decides a withdrawal's fee and limits. Amounts in minor units. */
export type TierTerms = {
  feeFixed: bigint
  /** Basis points of the amount, on top of the fixed part. */
  feeBps: number
  feeMin: bigint | null
  feeMax: bigint | null
  feePayer: FeePayer
  /** Per withdrawal, both inclusive. */
  lowerLimit: bigint
  upperLimit: bigint
  withdrawalsPerDay: number | null
  withdrawalsPerCycle: number | null
}

export type Tier = TierTerms & { name: string; version: number; currency: Currency }

/**
 * The fee for withdrawing `amount`: fixed part plus basis points, the percentage part rounded down in the payer's favour,
 * then raised to the minimum and lowered to the maximum.
 */
export function feeOf(terms: TierTerms, amount: bigint): bigint {
  return feeSteps(terms, amount).fee
}

/** How the fee for withdrawing `amount` comes about, step by step. */
export type FeeSteps = {
  fixedPart: bigint
  /** Rounded down, in the payer's favour. */
  percentagePart: bigint
  /** The two parts, raised to the minimum where that is more. */
  atLeast: bigint
  /** And lowered to the maximum where that is less: the fee. */
  fee: bigint
}

export function feeSteps(terms: TierTerms, amount: bigint): FeeSteps {
  const fixedPart = terms.feeFixed
  const percentagePart = shareRoundedDown(amount, terms.feeBps)
  const both = fixedPart + percentagePart
  const atLeast = terms.feeMin !== null && both < terms.feeMin ? terms.feeMin : both
  const fee = terms.feeMax !== null && atLeast > terms.feeMax ? terms.feeMax : atLeast
  return { fixedPart, percentagePart, atLeast, fee }
}

/** What of `amount` does not reach the member because of the fee: nothing when the employer pays it. */
export function memberFeeOf(terms: TierTerms, amount: bigint): bigint {
  return terms.feePayer === 'member' ? feeOf(terms, amount) : 0n
}

/**
 * The least amount that can be withdrawn: the tier's lower limit, or more where the fee would leave nothing.
 *
 * What is left after the fee never shrinks as the amount grows (a fee rises by at most one unit per unit, since
 * `feeBps` < 10000), so that the least amount that leaves something is found by halving.
 * @returns above `upperLimit` when the fee eats everything up to there; `termsFault` keeps such terms out
 */
export function lowestAmount(terms: TierTerms): bigint {
  let tooLow = terms.lowerLimit - 1n
  let enough = terms.upperLimit + 1n
  while (enough - tooLow > 1n) {
    const middle = (tooLow + enough) / 2n
    if (memberFeeOf(terms, middle) < middle) enough = middle
    else tooLow = middle
  }
  return enough
}

/** Terms with their amounts as Money objects. */
export function termsToWire(terms: TierTerms, currency: Currency) {
  const money = (amount: bigint) => toWire({ amount, currency })
  const moneyOrNull = (amount: bigint | null) => (amount === null ? null : money(amount))
  return {
    feeFixed: money(terms.feeFixed),
    feeBps: terms.feeBps,
    feeMin: moneyOrNull(terms.feeMin),
    feeMax: moneyOrNull(terms.feeMax),
    feePayer: terms.feePayer,
    lowerLimit: money(terms.lowerLimit),
    upperLimit: money(terms.upperLimit),
    withdrawalsPerDay: terms.withdrawalsPerDay,
    withdrawalsPerCycle: terms.withdrawalsPerCycle,
  }
}

/** Why these terms cannot be used, in a sentence; undefined when they can. */
export function termsFault(terms: TierTerms): string | undefined {
  if (terms.feeFixed < 0n || terms.feeBps < 0 || (terms.feeMin ?? 0n) < 0n) return 'A fee cannot be negative'
  if (!Number.isInteger(terms.feeBps) || terms.feeBps > 9_999)
    return 'The fee in basis points must be a whole number from 0 to 9999'
  if (terms.feeMax !== null && terms.feeMax < (terms.feeMin ?? 0n)) return 'The maximum fee is below the minimum fee'
  if (terms.lowerLimit < 1n) return 'The lower limit must be at least one minor unit'
  if (terms.upperLimit < terms.lowerLimit) return 'The upper limit is below the lower limit'
  if (terms.upperLimit > BigInt(Number.MAX_SAFE_INTEGER))
    return `The upper limit must not exceed ${Number.MAX_SAFE_INTEGER}`
  if ((terms.withdrawalsPerDay ?? 1) < 1 || (terms.withdrawalsPerCycle ?? 1) < 1)
    return 'A number of withdrawals must be at least 1'
  if (lowestAmount(terms) > terms.upperLimit) return 'The fee would take every amount up to the upper limit'
  return undefined
}
