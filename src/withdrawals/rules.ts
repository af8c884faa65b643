import { type BankAccount, check, isSame } from '../bank-accounts/rules.ts'
import { type Problem, problem } from '../kernel/errors.ts'
import { type Currency, inWords, type Money, toWire } from '../kernel/money.ts'
import { countOf } from '../kernel/text.ts'
import type { Restrictions } from '../members/restrictions.ts'
import { memberNotFound } from '../members/rules.ts'
import { noOpenCycle } from '../pay-cycles/rules.ts'
import { feeOf, lowestAmount, memberFeeOf, type Tier } from '../tiers/rules.ts'
import type { IntentStatus } from './lifecycle.ts'

/** Everything that decides a withdrawal. */
export type Facts = {
  /** Whether a bank is connected to pay through. */
  hasRail: boolean
  /** Whether the operator has paused the partner. */
  paused: boolean
  /** The partner's float in the member's currency; null if it has no floor. */
  float: FloatFacts | null
  /** The open pay cycle; null if there is none. */
  payCycleId: string | null
  member: MemberFacts | null
}

/** In minor units. `isAlerted`: the low-float alert is raised. */
type FloatFacts = { free: bigint; floor: bigint; isAlerted: boolean }

export type MemberFacts = Restrictions & {
  id: string
  status: 'invited' | 'active' | 'inactive'
  account: BankAccount | null
  /** The account as stored, which an intent copies. */
  sealedAccount?: Buffer | null
  /** Why the bank that pays cannot pay to the account; undefined if it can. */
  accountRefusal?: string | undefined
  tier: Tier
  /** In minor units of the tier's currency. */
  available: bigint
  /** Withdrawals (not cancelled, failed or returned) of the partner's day and of the open cycle. */
  withdrawalsToday: number
  withdrawalsThisCycle: number
}

/** A quote, as the member sees it before confirming: `grossAmount` leaves their pay, `netAmount` reaches their account. */
export type Quote = {
  memberId: string
  payCycleId: string
  currency: Currency
  grossAmount: bigint
  netAmount: bigint
  fee: bigint
  /** Charged to the employer instead of the member; at least one of the two fees is zero. */
  employerFee: bigint
  tier: string
  tierVersion: number
  account: BankAccount
}

/** A recorded quote. */
export type Intent = Quote & {
  id: string
  status: IntentStatus
  createdAt: Date
  expiresAt: Date
}

/**
 * Decides a withdrawal intent: the quote, or the first refusal by the table of errors. Pure.
 */
export function decideIntent(facts: Facts, { memberId, amount }: { memberId: string; amount: Money }): Quote | Problem {
  const { member, payCycleId } = facts
  if (member === null) return memberNotFound(memberId)
  const { tier } = member
  if (amount.currency !== tier.currency) {
    return problem('BodyValidation', `amount.currency must be ${tier.currency}, the currency of the member's pay`, {
      path: 'amount.currency',
    })
  }
  const refusal = refusalOf(facts, member, { amount, lowest: lowestAmount(tier) })
  if (refusal !== undefined) return refusal
  // `refusalOf` has refused a missing cycle and a missing account.
  if (payCycleId === null || member.account === null)
    throw new Error('A withdrawal was accepted without a cycle or an account')
  const fullFee = feeOf(tier, amount.amount)
  const fee = memberFeeOf(tier, amount.amount)
  return {
    memberId,
    payCycleId,
    currency: amount.currency,
    grossAmount: amount.amount,
    netAmount: amount.amount - fee,
    fee,
    employerFee: fullFee - fee,
    tier: tier.name,
    tierVersion: tier.version,
    account: member.account,
  }
}

/**
 * Decides the completion of an intent that is not completed yet. A quote reserves no funds, so everything is checked again,
 * except the fee, which stays as quoted.
 * @returns the refusal; undefined if the money may move
 */
export function refuseCompletion(facts: Facts, intent: Intent, now: Date): Problem | undefined {
  const outdated = refuseOutdated(facts, intent, now)
  if (outdated !== undefined) return outdated
  if (facts.member === null) return memberNotFound(intent.memberId)
  const { grossAmount: amount, currency } = intent
  return refusalOf(facts, facts.member, { amount: { amount, currency }, lowest: facts.member.tier.lowerLimit })
}

/** `crossesFloor`: this withdrawal takes the float below its floor, and the low-float alert is not raised yet. */
export type Accepted = { balanceAfter: bigint; crossesFloor: boolean }

/**
 * Decides completions in order, each on the balances that the previous ones leave. All facts are from one snapshot, and each
 * intent occurs once.
 *
 * If a member withdraws just before and just after midnight, each withdrawal also counts towards the day of the other.
 */
export function decideCompletions(
  asked: { partnerId: string; intent: Intent; now: Date; facts: Facts }[],
): (Accepted | Problem)[] {
  const members = new Map<string, MemberFacts>()
  const floats = new Map<string, FloatFacts>()
  return asked.map(({ partnerId, intent, now, facts: asLoaded }) => {
    const watch = `${partnerId} ${intent.currency}`
    const facts = {
      ...asLoaded,
      member: stricter(asLoaded.member, members.get(intent.memberId)),
      float: floats.get(watch) ?? asLoaded.float,
    }
    const refusal = refuseCompletion(facts, intent, now)
    if (refusal !== undefined) return refusal
    if (facts.member === null) throw new Error('A withdrawal was accepted without its member')
    const left = memberAfter(facts.member, intent)
    members.set(intent.memberId, left)
    if (facts.float !== null) floats.set(watch, floatAfter(facts.float, intent))
    return { balanceAfter: left.available, crossesFloor: crossesFloor(facts.float, intent.netAmount) }
  })
}

// The balance that earlier commands leave; but this command's own day may have had more withdrawals.
function stricter(asLoaded: MemberFacts | null, left: MemberFacts | undefined): MemberFacts | null {
  if (asLoaded === null || left === undefined) return asLoaded
  return { ...left, withdrawalsToday: Math.max(left.withdrawalsToday, asLoaded.withdrawalsToday) }
}

function memberAfter(member: MemberFacts, { grossAmount }: Intent): MemberFacts {
  return {
    ...member,
    available: member.available - grossAmount,
    withdrawalsToday: member.withdrawalsToday + 1,
    withdrawalsThisCycle: member.withdrawalsThisCycle + 1,
  }
}

// A float below its floor refuses the next withdrawal, so it cannot cross the floor again.
function floatAfter(float: FloatFacts, { netAmount }: Intent): FloatFacts {
  return { ...float, free: float.free - netAmount }
}

/**
 * Why no member of the partner can withdraw in this currency: no bank is connected, the partner is paused, or the free
 * amount of its float is below the floor. Null if they can.
 */
export function suspensionReason({
  hasRail,
  paused,
  float,
}: Pick<Facts, 'hasRail' | 'paused' | 'float'>): 'no rail' | 'paused' | 'float low' | null {
  if (!hasRail) return 'no rail'
  if (paused) return 'paused'
  if (float !== null && float.free < float.floor) return 'float low'
  return null
}

/** Whether paying out `netAmount` takes the float below its floor while the low-float alert is not raised yet. */
function crossesFloor(float: FloatFacts | null, netAmount: bigint): boolean {
  return float !== null && !float.isAlerted && float.free - netAmount < float.floor
}

/** An intent counts as expired from its time on, even before the worker has marked it. */
export function statusAt(intent: Pick<Intent, 'status' | 'expiresAt'>, now: Date): Intent['status'] {
  return intent.status === 'pending' && intent.expiresAt <= now ? 'expired' : intent.status
}

function refuseOutdated({ member, payCycleId }: Facts, intent: Intent, now: Date): Problem | undefined {
  switch (statusAt(intent, now)) {
    case 'cancelled':
      return problem('Conflict', 'The withdrawal intent was cancelled; create a new one')
    case 'expired':
      return problem('Conflict', 'The withdrawal intent has expired; create a new one')
    case 'completed':
      throw new Error(`${intent.id} is already completed`)
    case 'pending':
      break
  }
  if (payCycleId !== null && payCycleId !== intent.payCycleId) {
    return problem('Conflict', 'The pay cycle of the withdrawal intent has closed; create a new one')
  }
  if (member !== null && (member.account === null || !isSame(member.account, intent.account))) {
    return problem('Conflict', 'The member’s bank account has changed since the quote; create a new withdrawal intent')
  }
  if (member !== null && member.tier.currency !== intent.currency) {
    return problem(
      'Conflict',
      'The currency of the member’s pay has changed since the quote; create a new withdrawal intent',
    )
  }
  return undefined
}

// Checks the refusals in the order of the table of errors.
function refusalOf(
  facts: Facts,
  member: MemberFacts,
  { amount, lowest }: { amount: Money; lowest: bigint },
): Problem | undefined {
  return (
    refuseUnavailable(facts) ??
    refuseIneligible(member) ??
    refuseAccount(member) ??
    refuseAmount(amount, { lowest, highest: member.tier.upperLimit }) ??
    refuseFunds(member, amount)
  )
}

const noRailMessage =
  'On-demand pay is unavailable: no bank is connected to this installation; ask its operator to connect one'

// A person must resume the partner or fund the float, so frequent retries are useless.
const retryAfterSeconds = 300

function refuseUnavailable(facts: Facts): Problem | undefined {
  const why = suspensionReason(facts)
  // No retry-after: connecting a bank takes a deployment.
  if (why === 'no rail') return problem('UnprocessableEntity', noRailMessage)
  if (why !== null) {
    const until = why === 'paused' ? '' : ' until its float is funded again'
    const message = `On-demand pay is temporarily unavailable${until}; try again later`
    return problem('UnprocessableEntity', message, {}, { 'retry-after': String(retryAfterSeconds) })
  }
  if (facts.payCycleId === null) return noOpenCycle()
  return undefined
}

function refuseIneligible(member: MemberFacts): Problem | undefined {
  const { id, status, reviewReason, tier, withdrawalsToday, withdrawalsThisCycle } = member
  if (status !== 'active')
    return problem('MemberNotEligible', `The member is ${status}; only active members can withdraw`, { memberId: id })
  if (reviewReason !== null) {
    return problem(
      'MemberNotEligible',
      `The bank did not make a payment to the member (${reviewReason}); ask the operator to review and release the member`,
      { memberId: id },
    )
  }
  if (tier.withdrawalsPerDay !== null && withdrawalsToday >= tier.withdrawalsPerDay) {
    return problem(
      'MemberNotEligible',
      `The tier allows ${countOf(tier.withdrawalsPerDay, 'withdrawal')} a day; try again tomorrow`,
      { memberId: id },
    )
  }
  if (tier.withdrawalsPerCycle !== null && withdrawalsThisCycle >= tier.withdrawalsPerCycle) {
    return problem(
      'MemberNotEligible',
      `The tier allows ${countOf(tier.withdrawalsPerCycle, 'withdrawal')} in a pay cycle; try again in the next`,
      { memberId: id },
    )
  }
  return undefined
}

function refuseAccount({ account, accountRefusal, accountRefused }: MemberFacts): Problem | undefined {
  if (account === null)
    return problem('BankAccountInvalid', 'The member has no bank account; add one to the member first')
  if (check(account) === 'invalid')
    return problem('BankAccountInvalid', 'The member’s bank account fails its check; correct it first')
  if (accountRefusal !== undefined)
    return problem('BankAccountInvalid', `${accountRefusal}; change the member’s bank account first`)
  if (accountRefused !== null) {
    return problem(
      'BankAccountInvalid',
      `The bank refused the member’s bank account (${accountRefused}); change the account first`,
    )
  }
  return undefined
}

function refuseAmount(
  { amount, currency }: Money,
  { lowest, highest }: { lowest: bigint; highest: bigint },
): Problem | undefined {
  const lowerLimit = { amount: lowest, currency }
  const upperLimit = { amount: highest, currency }
  if (amount < lowerLimit.amount) {
    return problem('AmountBelowLowerLimit', `The lowest amount that can be withdrawn is ${inWords(lowerLimit)}`, {
      lowerLimit: toWire(lowerLimit),
    })
  }
  if (amount > upperLimit.amount) {
    return problem(
      'AmountAboveUpperLimit',
      `The highest amount that can be withdrawn at once is ${inWords(upperLimit)}`,
      {
        upperLimit: toWire(upperLimit),
      },
    )
  }
  return undefined
}

function refuseFunds({ id, available }: MemberFacts, { amount }: Money): Problem | undefined {
  if (amount <= available) return undefined
  return problem('MemberInsufficientFunds', 'The amount exceeds the member’s available balance', { memberId: id })
}
