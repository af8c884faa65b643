import { stringify } from 'csv-stringify/sync'
import { escapeFormulas } from '../csv.ts'
import { inDecimals } from '../money.ts'
import type { DeductionWithWorker } from './deductions.ts'

const columns = ['member_id', 'worker_id', 'email', 'amount', 'currency', 'amount_decimal'] as const

/** The first line of the file. */
export const deductionsHeader = csv([columns])

/**
 * Deductions as lines of a file for payroll and for spreadsheets: no cell that a partner has written is taken for a
 * formula. The amount stands there twice, in minor units for programs and in decimals for people. The same file, with the
 * amounts that were really taken, is a settlement.
 */
export function deductionLines(deductions: DeductionWithWorker[]): string {
  return csv(
    deductions.map(({ memberId, workerId, email, amount, currency }) => [
      memberId,
      workerId,
      email,
      amount,
      currency,
      new Decimal(inDecimals({ amount, currency })),
    ]),
  )
}

// Ours, and a number: its minus sign begins no formula.
class Decimal {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

function csv(rows: readonly (readonly unknown[])[]): string {
  const cells = rows.map(row => row.map(cell => (typeof cell === 'string' ? escapeFormulas(cell) : cell)))
  return stringify(cells, {
    // Source: RFC 4180, section 2.
    record_delimiter: 'windows',
    cast: { object: value => String(value.text) },
  })
}
