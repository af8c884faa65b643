import { type Currency, shareRoundedDown } from '../kernel/money.ts'
import { type TierTerms, termsToWire, tierTerms } from './terms.ts'

export type Tier = TierTerms & { name: string; version: number; currency: Currency }

/**
 * Returns the fee for withdrawing `amount`: the fixed part plus the percentage part, kept within the minimum and maximum.
 * The percentage part is rounded down, in the payer's favour.
 */
export function feeOf(terms: TierTerms, amount: bigint): bigint {
  return feeSteps(terms, amount).fee
}

/** The calculation of a fee, step by step. */
export type FeeSteps = {
  fixedPart: bigint
  /** Rounded down, in the payer's favour. */
  percentagePart: bigint
  /** Sum of the two parts, or the minimum fee if that is higher. */
  atLeast: bigint
  /** `atLeast`, or the maximum fee if that is lower. */
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

/** Returns the fee that the member pays: zero if the employer pays it. */
export function memberFeeOf(terms: TierTerms, amount: bigint): bigint {
  return terms.feePayer === 'member' ? feeOf(terms, amount) : 0n
}

/**
 * Returns the smallest amount that can be withdrawn: the tier's lower limit, or more if the fee would consume that.
 *
 * The net amount never falls as the gross amount rises: the fee rises by at most one unit per unit, since `feeBps` < 10000.
 * A binary search therefore finds the smallest amount that leaves something.
 * @returns more than `upperLimit` if the fee consumes every amount up to it; `termsFault` rejects such terms
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

/**
 * Returns the net amount of the largest withdrawal that these terms allow from an available balance; zero if that is less than
 * the smallest amount.
 * @param lowest the smallest amount, as `lowestAmount` returns it
 */
export function mostReceivable(terms: TierTerms, { available, lowest }: { available: bigint; lowest: bigint }): bigint {
  const amount = available < terms.upperLimit ? available : terms.upperLimit
  return amount < lowest ? 0n : amount - memberFeeOf(terms, amount)
}

/** Returns a version of a tier in the form for operators and the audit log. */
export function versionToWire({ version, currency, ...terms }: Tier) {
  return { version, currency, ...termsToWire(terms, currency) }
}

/** Returns why the terms are invalid, as a message for the operator; undefined if they are valid. */
export function termsFault(terms: TierTerms): string | undefined {
  const { max: feeBpsMax } = tierTerms.feeBps.bounds
  if (terms.feeFixed < 0n || terms.feeBps < 0 || (terms.feeMin ?? 0n) < 0n) return 'Fees must not be negative'
  if (!Number.isInteger(terms.feeBps) || terms.feeBps > feeBpsMax)
    return `The fee in basis points must be a whole number from 0 to ${feeBpsMax}`
  if (terms.feeMax !== null && terms.feeMax < (terms.feeMin ?? 0n))
    return 'The maximum fee must not be below the minimum fee'
  if (terms.lowerLimit < 1n) return 'The lower limit must be at least one minor unit'
  if (terms.upperLimit < terms.lowerLimit) return 'The upper limit must not be below the lower limit'
  if (terms.upperLimit > BigInt(Number.MAX_SAFE_INTEGER))
    return `The upper limit must not exceed ${Number.MAX_SAFE_INTEGER}`
  const [perDayMax, perCycleMax] = [tierTerms.withdrawalsPerDay.bounds.max, tierTerms.withdrawalsPerCycle.bounds.max]
  const [perDay, perCycle] = [terms.withdrawalsPerDay ?? 1, terms.withdrawalsPerCycle ?? 1]
  if (perDay < 1 || perDay > perDayMax || perCycle < 1 || perCycle > perCycleMax)
    return `A limit on the number of withdrawals must be at least 1, and at most ${perDayMax} per day or ${perCycleMax} per cycle`
  if (lowestAmount(terms) > terms.upperLimit)
    return 'The fee would consume every amount up to the upper limit; lower the fee or raise the limit'
  return undefined
}
