import type { Transfer } from '../ledger/ledger.ts'
import { amountMax, type Currency } from '../money.ts'

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

/** A currency in which the lines together move more than a number on the wire can hold; undefined when there is none. */
export function currencyBeyondWire(lines: Line[]): Currency | undefined {
  const moved = new Map<Currency, bigint>()
  for (const { amount, currency } of lines) {
    moved.set(currency, (moved.get(currency) ?? 0n) + (amount < 0n ? -amount : amount))
  }
  return [...moved].find(([, amount]) => amount > BigInt(amountMax))?.[0]
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
