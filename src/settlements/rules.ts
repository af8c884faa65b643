import type { Transfer } from '../ledger/ledger.ts'
import { amountMax, type Currency, type Money } from '../money.ts'
import type { ShortfallPolicy } from '../partners/partners.ts'

/** What payroll says it took from one member; `at` is where it says so: the index in the body, or the row of the file. */
export type Taken = Money & { memberId: string; at: number }

/** What was to be taken from one member. */
export type Deduction = Money & { memberId: string }

/** `short`: payroll took less than the deduction; `over`: more; `unknown`: from a member who had none. */
export type Outcome = 'matched' | 'short' | 'over' | 'unknown'

export type Line = {
  memberId: string
  currency: Currency
  deducted: bigint
  taken: bigint
  outcome: Outcome
  /** Positive: still to be taken, in the next cycle; negative: to be given back there. */
  carried: bigint
  writtenOff: bigint
}

/** Something in a settlement that cannot be; `field` is the part of the line that it is about, if it is about one. */
export type Fault = { at: number; field?: 'memberId' | 'amount' | 'currency'; message: string }

/**
 * What is wrong with a line of a settlement, one after the other. Nothing may be booked while there is something.
 * @param deductions of all members whose lines are checked
 * @param currencyOf the members of this partner, with the currency that they are paid in now
 * @param totals what lines add up to; those that are checked are added
 */
export function lineCheck({
  deductions,
  currencyOf,
  totals,
}: {
  deductions: Deduction[]
  currencyOf: ReadonlyMap<string, Currency>
  totals: Map<Currency, bigint>
}): (line: Taken) => Fault[] {
  const deducted = new Map(deductions.map(deduction => [keyOf(deduction), deduction.amount]))
  const withDeduction = new Set(deductions.map(deduction => deduction.memberId))
  const seen = new Set<string>()
  return line => {
    const { at } = line
    const inItself = faultInItself(line)
    const isRepeated = seen.has(keyOf(line))
    seen.add(keyOf(line))
    return [
      ...(inItself === undefined ? [] : [{ at, ...inItself }]),
      ...(isRepeated
        ? [{ at, field: 'memberId' as const, message: 'the member stands on an earlier line already' }]
        : []),
    ]
  }

  function faultInItself(line: Taken): Omit<Fault, 'at'> | undefined {
    const { memberId, amount, currency } = line
    const memberCurrency = currencyOf.get(memberId)
    if (memberCurrency === undefined) return { field: 'memberId', message: 'there is no such member' }
    const deduction = deducted.get(keyOf(line))
    if (deduction === undefined && (withDeduction.has(memberId) || currency !== memberCurrency)) {
      return { field: 'currency', message: `the member has no deduction in ${currency}, and is not paid in it` }
    }
    if (amount < 0n && (deduction ?? 0n) >= 0n) {
      return { field: 'amount', message: 'may be negative only where the deduction is' }
    }
    const total = (totals.get(currency) ?? 0n) + (amount < 0n ? -amount : amount)
    totals.set(currency, total)
    if (total > BigInt(amountMax)) {
      return { field: 'amount', message: `brings the ${currency} of the settlement above ${amountMax}` }
    }
    return undefined
  }
}

/**
 * Compares what was to be taken with what was. A member whom the settlement does not mention took nothing. What is missing
 * is carried to the next cycle or written off, as the partner has decided; what is too much is always given back there.
 * @returns one line per deduction and per further member of the settlement; for each one
 * deducted = taken + carried + writtenOff
 */
export function settle(
  taken: Taken[],
  { deductions, policy }: { deductions: Deduction[]; policy: ShortfallPolicy },
): Line[] {
  const takenOf = new Map(taken.map(line => [keyOf(line), line.amount]))
  const known = new Set(deductions.map(keyOf))
  const lines = deductions.map(deduction => {
    const took = takenOf.get(keyOf(deduction)) ?? 0n
    return lineOf(deduction, { deducted: deduction.amount, taken: took, policy })
  })
  const others = taken
    .filter(line => !known.has(keyOf(line)))
    .map(line => ({ ...lineOf(line, { deducted: 0n, taken: line.amount, policy }), outcome: 'unknown' as const }))
  return [...lines, ...others]
}

function lineOf(
  { memberId, currency }: { memberId: string; currency: Currency },
  { deducted, taken, policy }: { deducted: bigint; taken: bigint; policy: ShortfallPolicy },
): Line {
  const missing = deducted - taken
  const writtenOff = missing > 0n && policy === 'write_off' ? missing : 0n
  const outcome = missing === 0n ? 'matched' : missing > 0n ? 'short' : 'over'
  return { memberId, currency, deducted, taken, outcome, carried: missing - writtenOff, writtenOff }
}

/**
 * What a line books: all that brings the member's earned pay of the settled cycle to zero, and what goes on from there to
 * the open cycle.
 */
export function transfersOf(
  { memberId, currency, taken, carried, writtenOff }: Line,
  { settledCycleId, openCycleId }: { settledCycleId: string; openCycleId: string },
): Transfer[] {
  const about = { currency, memberId }
  const settled = { ...about, payCycleId: settledCycleId }
  const next = { ...about, payCycleId: openCycleId }
  return [
    ...signed({ debit: 'float', credit: 'earned_pay', amount: taken, ...settled }),
    ...signed({ debit: 'written_off', credit: 'earned_pay', amount: writtenOff, ...settled }),
    ...signed({ debit: 'carried', credit: 'earned_pay', amount: carried, ...settled }),
    ...signed({ debit: 'earned_pay', credit: 'carried', amount: carried, ...next }),
  ]
}

// A negative amount goes the other way round; nothing is nothing.
function signed(transfer: Transfer): Transfer[] {
  const { debit, credit, amount } = transfer
  if (amount === 0n) return []
  return amount > 0n ? [transfer] : [{ ...transfer, debit: credit, credit: debit, amount: -amount }]
}

function keyOf({ memberId, currency }: { memberId: string; currency: Currency }): string {
  return `${memberId} ${currency}`
}
