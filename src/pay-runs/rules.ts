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
 * @param balances before these lines, by `balanceKey`; a member without books has nothing and owes nothing. They are moved on,
 * for the lines that follow
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
      const settled = least(line.amount, owed)
      const given = line.amount - settled
      balances.set(key, { available: available + given, owed: owed - settled })
      return withoutZeros([
        { debit: 'earned_pay', credit: 'member_owed', amount: settled, ...about },
        { debit: 'earned_pay', credit: 'member_available', amount: given, ...about },
      ])
    }
    const taken = least(-line.amount, available)
    const rest = -line.amount - taken
    balances.set(key, { available: available - taken, owed: owed + rest })
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

/** A line, and its place in the pay run. */
export type PlacedLine = Line & { at: number }

// Beyond it they are not worth sorting; an answer names a thousand.
const foundMax = 20_000

/** Finds why a pay run cannot be taken in. It is given the lines in any order, those of one member in theirs. */
export class PayRunCheck {
  private readonly wrongCurrencies: { at: number; issue: Issue }[] = []
  private readonly ineligible: { at: number; issue: Issue }[] = []
  private readonly ineligibleIds = new Set<string>()
  private readonly moved = new Map<string, bigint>()
  private beyondWire: string | undefined

  /** @param balances as for `transfersOf` */
  add(line: PlacedLine, { payees, balances }: { payees: Payees; balances: ReadonlyMap<string, Balance> }): void {
    const { memberId, currency, at } = line
    const payee = payees.get(memberId)
    if (payee === undefined || payee.status === 'inactive') this.addIneligible(line, payee !== undefined)
    // Of a member who cannot be paid at all, the currency is not what to mend.
    else if (payee.currency !== currency && this.wrongCurrencies.length < foundMax) {
      const path = `payDetails.${at}.money.currency`
      const message = `${path} must be ${payee.currency}, the currency of the member's pay`
      this.wrongCurrencies.push({ at, issue: issue('BodyValidation', message, { path }) })
    }
    this.addMoved(line, balances.get(balanceKey(line)) ?? { available: 0n, owed: 0n })
  }

  /** In the order of the table of errors; undefined when it can be taken in. */
  refusal({ hasOpenCycle }: { hasOpenCycle: boolean }): Problem | undefined {
    const unpayable = firstOf(this.wrongCurrencies)
    if (this.beyondWire !== undefined) {
      const message = `payDetails add up to more than ${amountMax} for ${this.beyondWire}`
      unpayable.push(issue('BodyValidation', message, { path: 'payDetails' }))
    }
    if (unpayable.length > 0) return new Problem('BodyValidation', unpayable)
    if (!hasOpenCycle) return noOpenCycle()
    return this.ineligible.length > 0 ? new Problem('PayRunMemberNotEligible', firstOf(this.ineligible)) : undefined
  }

  private addIneligible({ memberId, at }: PlacedLine, isKnown: boolean): void {
    if (this.ineligibleIds.has(memberId) || this.ineligible.length >= foundMax) return
    this.ineligibleIds.add(memberId)
    const why = isKnown ? 'The member is inactive' : 'There is no such member'
    this.ineligible.push({ at, issue: issue('PayRunMemberNotEligible', `${why}; invite them first`, { memberId }) })
  }

  // What a number on the wire could not hold exactly must not come about: not as a total, and not as a member's balance.
  private addMoved({ memberId, amount, currency }: Line, { available, owed }: Balance): void {
    const size = amount < 0n ? -amount : amount
    const [side, start] = amount < 0n ? ['what the member owes', owed] : ['what the member has available', available]
    for (const [name, before] of [
      [currency, 0n],
      [`${memberId}, ${side}`, start],
    ] as const) {
      const after = (this.moved.get(name) ?? before) + size
      this.moved.set(name, after)
      if (after > BigInt(amountMax)) this.beyondWire ??= name
    }
  }
}

/** The first issues in the order of their lines. */
function firstOf(found: { at: number; issue: Issue }[]): Issue[] {
  return firstIssues(found.toSorted((a, b) => a.at - b.at).map(each => each.issue))
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
