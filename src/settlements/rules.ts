import { amountMax, type Currency, type Money } from '../kernel/money.ts'
import type { Transfer } from '../ledger/ledger.ts'
import type { ShortfallPolicy } from '../partners/partners.ts'

/** The amount that payroll reports it took from a member. `at` is the index in the body, or the row of the file. */
export type Taken = Money & { memberId: string; at: number }

/** The amount that payroll should have taken from a member. */
export type Deduction = Money & { memberId: string }

/** `short`: payroll took less than the deduction; `over`: more; `unknown`: the member had no deduction. */
export type LineOutcome = 'matched' | 'short' | 'over' | 'unknown'

export type SettlementLine = {
  memberId: string
  currency: Currency
  deducted: bigint
  taken: bigint
  outcome: LineOutcome
  /** Positive: to be taken in the next cycle. Negative: to be given back in it. */
  carried: bigint
  writtenOff: bigint
}

/** An error in a settlement; `field` is the field of the line, if the error concerns one. */
export type LineFault = { at: number; field?: 'memberId' | 'amount' | 'currency'; message: string }

type LineContext = { deductions: Deduction[]; currencyOf: ReadonlyMap<string, Currency>; totals: Map<Currency, bigint> }

/**
 * Returns a function that checks the lines of a settlement one by one. If any line has an error, nothing may be booked.
 * @param deductions the deductions of all members whose lines are checked
 * @param currencyOf the current currency of each of the partner's members
 * @param totals the sums so far, per currency; each checked line is added
 */
export function lineCheck({ deductions, currencyOf, totals }: LineContext): (line: Taken) => LineFault[] {
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
        ? [{ at, field: 'memberId' as const, message: 'duplicate of an earlier line for the same member and currency' }]
        : []),
    ]
  }

  function faultInItself(line: Taken): Omit<LineFault, 'at'> | undefined {
    const { memberId, amount, currency } = line
    const memberCurrency = currencyOf.get(memberId)
    if (memberCurrency === undefined) return { field: 'memberId', message: 'there is no such member' }
    const deduction = deducted.get(keyOf(line))
    if (deduction === undefined && (withDeduction.has(memberId) || currency !== memberCurrency)) {
      return { field: 'currency', message: `the member has no deduction in ${currency}; check the currency` }
    }
    if (amount < 0n && (deduction ?? 0n) >= 0n) {
      return { field: 'amount', message: 'amount must not be negative unless the deduction is' }
    }
    const total = (totals.get(currency) ?? 0n) + (amount < 0n ? -amount : amount)
    totals.set(currency, total)
    if (total > BigInt(amountMax)) {
      return { field: 'amount', message: `amount raises the settlement’s total in ${currency} above ${amountMax}` }
    }
    return undefined
  }
}

/**
 * Compares deductions with what payroll took. Payroll took nothing from a member without a line. A shortfall is carried to
 * the next cycle or written off, depending on the partner's policy; an excess is always given back in the next cycle.
 * @returns one line per deduction, and one per other member in the settlement; in each,
 * deducted = taken + carried + writtenOff
 */
export function settle(
  taken: Taken[],
  { deductions, policy }: { deductions: Deduction[]; policy: ShortfallPolicy },
): SettlementLine[] {
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
): SettlementLine {
  const missing = deducted - taken
  const writtenOff = missing > 0n && policy === 'write_off' ? missing : 0n
  const outcome = missing === 0n ? 'matched' : missing > 0n ? 'short' : 'over'
  return { memberId, currency, deducted, taken, outcome, carried: missing - writtenOff, writtenOff }
}

type TransferContext = { settledCycleId: string; openCycleId: string; takenTo: 'float' | 'payroll_receivable' }

/**
 * Returns the transfers of a line: they bring the member's earned pay of the settled cycle to zero, and carry the rest to the
 * open cycle.
 * @param takenTo the account of what payroll took: the float, or a receivable until the money has arrived there
 */
export function transfersOf(
  { memberId, currency, taken, carried, writtenOff }: SettlementLine,
  { settledCycleId, openCycleId, takenTo }: TransferContext,
): Transfer[] {
  const about = { currency, memberId }
  const settled = { ...about, payCycleId: settledCycleId }
  const next = { ...about, payCycleId: openCycleId }
  return [
    ...signed({ debit: takenTo, credit: 'earned_pay', amount: taken, ...settled }),
    ...signed({ debit: 'written_off', credit: 'earned_pay', amount: writtenOff, ...settled }),
    ...signed({ debit: 'carried', credit: 'earned_pay', amount: carried, ...settled }),
    ...signed({ debit: 'earned_pay', credit: 'carried', amount: carried, ...next }),
  ]
}

// Swaps debit and credit of a negative amount, and drops a zero amount.
function signed(transfer: Transfer): Transfer[] {
  const { debit, credit, amount } = transfer
  if (amount === 0n) return []
  return amount > 0n ? [transfer] : [{ ...transfer, debit: credit, credit: debit, amount: -amount }]
}

function keyOf({ memberId, currency }: { memberId: string; currency: Currency }): string {
  return `${memberId} ${currency}`
}
