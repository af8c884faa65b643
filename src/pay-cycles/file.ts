import { stringify } from 'csv-stringify/sync'
import { escapeFormulas } from '../csv.ts'
import { inDecimals } from '../money.ts'
import type { DeductionWithWorker } from './deductions.ts'

const columns = ['member_id', 'worker_id', 'email', 'amount', 'currency', 'amount_decimal'] as const

/** The header of the deductions file. */
export const deductionsHeader = csv([columns])

/**
 * Formats deductions as lines of a file for payroll and spreadsheets. Text from the partner is escaped, so that no cell is
 * read as a formula. Each line has the amount in minor units and in decimals. With the amounts that payroll really took, the
 * same file is a settlement.
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

// A number that we format: its minus sign does not start a formula.
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
