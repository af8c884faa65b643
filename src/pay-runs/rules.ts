import { firstIssues, type Issue, issue, Problem } from '../errors.ts'
import type { Transfer } from '../ledger/ledger.ts'
import { amountMax, type Currency } from '../money.ts'
import { noOpenCycle } from '../pay-cycles/rules.ts'

/** One line of a pay run; a negative amount corrects what an earlier one gave too much. */
export type Line = { memberId: string; amount: bigint; currency: Currency }

export type Balance = { available: bigint; owed: bigint }

/**
 * What a pay run books when it becomes available, line by line: what a member owes from an earlier correction is taken
 * first, the rest becomes available; a correction takes what is there, and the rest is owed.
 * @param balances before the pay run, by `balanceKey`; a member without books has nothing and owes nothing
 */
export function transfersOf(
  lines: Line[],
  { payCycleId, balances }: { payCycleId: string; balances: ReadonlyMap<string, Balance> },
): Transfer[] {
  const running = new Map(balances)
  return lines.flatMap(line => {
    const { memberId, currency } = line
    const key = balanceKey(line)
    const { available, owed } = running.get(key) ?? { available: 0n, owed: 0n }
    const about = { currency, memberId, payCycleId }
    if (line.amount > 0n) {
      const settled = least(line.amount, owed)
      const given = line.amount - settled
      running.set(key, { available: available + given, owed: owed - settled })
      return withoutZeros([
        { debit: 'earned_pay', credit: 'member_owed', amount: settled, ...about },
        { debit: 'earned_pay', credit: 'member_available', amount: given, ...about },
      ])
    }
    const taken = least(-line.amount, available)
    const rest = -line.amount - taken
    running.set(key, { available: available - taken, owed: owed + rest })
    return withoutZeros([
      { debit: 'member_available', credit: 'earned_pay', amount: taken, ...about },
      { debit: 'member_owed', credit: 'earned_pay', amount: rest, ...about },
    ])
  })
}

/** The lines that undo a pay run. */
export function opposite(lines: Line[]): Line[] {
  return lines.map(line => ({ ...line, amount: -line.amount }))
}

/** What of the members of a pay run decides whether it can be taken in; members who do not exist are missing. */
export type Payees = ReadonlyMap<string, { status: 'invited' | 'active' | 'inactive'; currency: Currency }>

/**
 * Why a pay run cannot be taken in, in the order of the table of errors; undefined when it can.
 * @param balances as for `transfersOf`
 */
export function refusePayRun(
  lines: Line[],
  { payees, balances, hasOpenCycle }: { payees: Payees; balances: ReadonlyMap<string, Balance>; hasOpenCycle: boolean },
): Problem | undefined {
  const unpayable = [...firstIssues(wrongCurrencies(lines, payees)), ...beyondWire(lines, balances)]
  if (unpayable.length > 0) return new Problem('BodyValidation', unpayable)
  if (!hasOpenCycle) return noOpenCycle()
  const ineligible = firstIssues(ineligibleMembers(lines, payees))
  return ineligible.length > 0 ? new Problem('PayRunMemberNotEligible', ineligible) : undefined
}

function* ineligibleMembers(lines: Line[], payees: Payees): Generator<Issue> {
  for (const memberId of new Set(lines.map(line => line.memberId))) {
    const payee = payees.get(memberId)
    if (payee !== undefined && payee.status !== 'inactive') continue
    const why = payee === undefined ? 'There is no such member' : 'The member is inactive'
    yield issue('PayRunMemberNotEligible', `${why}; invite them first`, { memberId })
  }
}

function* wrongCurrencies(lines: Line[], payees: Payees): Generator<Issue> {
  for (const [index, { memberId, currency }] of lines.entries()) {
    const payee = payees.get(memberId)
    // The currency of a member who cannot be paid is not what needs fixing.
    if (payee === undefined || payee.status === 'inactive' || payee.currency === currency) continue
    const path = `payDetails.${index}.money.currency`
    yield issue('BodyValidation', `${path} must be ${payee.currency}, the currency of the member's pay`, { path })
  }
}

// What a number on the wire could not hold exactly must not come about: not as a total, and not as a member's balance.
function beyondWire(lines: Line[], balances: ReadonlyMap<string, Balance>): Issue[] {
  const moved = new Map<string, bigint>()
  for (const line of lines) {
    const amount = line.amount < 0n ? -line.amount : line.amount
    const { available = 0n, owed = 0n } = balances.get(balanceKey(line)) ?? {}
    const [side, start] =
      line.amount < 0n ? ['what the member owes', owed] : ['what the member has available', available]
    const member = `${line.memberId}, ${side}`
    moved.set(line.currency, (moved.get(line.currency) ?? 0n) + amount)
    moved.set(member, (moved.get(member) ?? start) + amount)
  }
  const beyond = [...moved].find(([, amount]) => amount > BigInt(amountMax))
  if (beyond === undefined) return []
  return [
    issue('BodyValidation', `payDetails add up to more than ${amountMax} for ${beyond[0]}`, { path: 'payDetails' }),
  ]
}

export function balanceKey({ memberId, currency }: { memberId: string; currency: Currency }): string {
  return `${memberId} ${currency}`
}

function withoutZeros(transfers: Transfer[]): Transfer[] {
  return transfers.filter(transfer => transfer.amount > 0n)
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
