import { firstIssues, type Issue, issue, Problem } from '../kernel/errors.ts'
import { amountMax, type Currency } from '../kernel/money.ts'
import type { Transfer } from '../ledger/ledger.ts'
import { noOpenCycle } from '../pay-cycles/rules.ts'

/** The largest partners pay this many members at once; more members take several pay runs. */
export const linesMax = 100_000

/** One line of a pay run. A negative amount corrects an earlier overpayment. */
export type Line = { memberId: string; amount: bigint; currency: Currency }

export type Balance = { available: bigint; owed: bigint }

/**
 * Returns the transfers of a pay run that becomes available, line by line. Pay first repays what the member owes; the rest
 * becomes available. A correction reduces the available balance; the rest is owed.
 * @param balances the balances before these lines, by `balanceKey`; a missing entry is a zero balance. Updated in place, for
 * the lines that follow
 */
export function transfersOf(
  lines: Line[],
  { payCycleId, balances }: { payCycleId: string; balances: Map<string, Balance> },
): Transfer[] {
  return lines.flatMap(line => {
    const { memberId, currency } = line
    const key = balanceKey(line)
    const { available, owed } = balances.get(key) ?? { available: 0n, owed: 0n }
    const about = { currency, memberId, payCycleId }
    if (line.amount > 0n) {
      const repaid = min(line.amount, owed)
      const added = line.amount - repaid
      balances.set(key, { available: available + added, owed: owed - repaid })
      return withoutZeros([
        { debit: 'earned_pay', credit: 'member_owed', amount: repaid, ...about },
        { debit: 'earned_pay', credit: 'member_available', amount: added, ...about },
      ])
    }
    const taken = min(-line.amount, available)
    const rest = -line.amount - taken
    balances.set(key, { available: available - taken, owed: owed + rest })
    return withoutZeros([
      { debit: 'member_available', credit: 'earned_pay', amount: taken, ...about },
      { debit: 'member_owed', credit: 'earned_pay', amount: rest, ...about },
    ])
  })
}

/** Returns the lines that reverse a pay run. */
export function opposite(lines: Line[]): Line[] {
  return lines.map(line => ({ ...line, amount: -line.amount }))
}

/** The member data that decides whether a pay run is accepted. Unknown members have no entry. */
export type Payees = ReadonlyMap<string, { status: 'invited' | 'active' | 'inactive'; currency: Currency }>

/** A line with its index in the pay run. */
export type PlacedLine = Line & { at: number }

// A response lists only a thousand issues; collecting and sorting more is not worth the memory.
const foundMax = 20_000

/** Finds the reasons to refuse a pay run. Lines may be added in any order, but each member's lines in their own order. */
export class PayRunCheck {
  private readonly wrongCurrencies: { at: number; issue: Issue }[] = []
  private readonly ineligible: { at: number; issue: Issue }[] = []
  private readonly ineligibleIds = new Set<string>()
  private readonly sums = new Map<string, bigint>()
  private overflow: string | undefined

  /** @param balances as for `transfersOf` */
  add(line: PlacedLine, { payees, balances }: { payees: Payees; balances: ReadonlyMap<string, Balance> }): void {
    const { memberId, currency, at } = line
    const payee = payees.get(memberId)
    if (payee === undefined || payee.status === 'inactive') this.addIneligible(line, payee !== undefined)
    // A wrong currency is not worth reporting for an ineligible member.
    else if (payee.currency !== currency && this.wrongCurrencies.length < foundMax) {
      const path = `payDetails.${at}.money.currency`
      const message = `${path} must be ${payee.currency}, the currency of the member's pay`
      this.wrongCurrencies.push({ at, issue: issue('BodyValidation', message, { path }) })
    }
    this.addToSums(line, balances.get(balanceKey(line)) ?? { available: 0n, owed: 0n })
  }

  /** Returns the refusal that comes first in the table of errors; undefined if the pay run is accepted. */
  refusal({ hasOpenCycle }: { hasOpenCycle: boolean }): Problem | undefined {
    const invalid = firstOf(this.wrongCurrencies)
    if (this.overflow !== undefined) {
      const message = `payDetails raise ${this.overflow} above ${amountMax}; split or correct the amounts`
      invalid.push(issue('BodyValidation', message, { path: 'payDetails' }))
    }
    if (invalid.length > 0) return new Problem('BodyValidation', invalid)
    if (!hasOpenCycle) return noOpenCycle()
    return this.ineligible.length > 0 ? new Problem('PayRunMemberNotEligible', firstOf(this.ineligible)) : undefined
  }

  private addIneligible({ memberId, at }: PlacedLine, isKnown: boolean): void {
    if (this.ineligibleIds.has(memberId) || this.ineligible.length >= foundMax) return
    this.ineligibleIds.add(memberId)
    const message = isKnown
      ? 'The member is inactive; reinstate the member first'
      : 'There is no such member; check the memberId'
    this.ineligible.push({ at, issue: issue('PayRunMemberNotEligible', message, { memberId }) })
  }

  // Neither a total nor a member's balance may exceed what a number on the wire can hold exactly.
  private addToSums({ memberId, amount, currency }: Line, { available, owed }: Balance): void {
    const size = amount < 0n ? -amount : amount
    const [side, start] = amount < 0n ? ['debt', owed] : ['available balance', available]
    for (const [name, before] of [
      [`the total in ${currency}`, 0n],
      [`the ${side} of ${memberId}`, start],
    ] as const) {
      const after = (this.sums.get(name) ?? before) + size
      this.sums.set(name, after)
      if (after > BigInt(amountMax)) this.overflow ??= name
    }
  }
}

/** Returns the first issues, in line order. */
function firstOf(found: { at: number; issue: Issue }[]): Issue[] {
  return firstIssues(found.toSorted((a, b) => a.at - b.at).map(each => each.issue))
}

export function balanceKey({ memberId, currency }: { memberId: string; currency: Currency }): string {
  return `${memberId} ${currency}`
}

function withoutZeros(transfers: Transfer[]): Transfer[] {
  return transfers.filter(transfer => transfer.amount > 0n)
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
