import { inDecimals } from '../kernel/money.ts'
import { csvLines } from '../tabular/tabular.ts'
import type { DeductionWithWorker } from './deductions.ts'

/** The first line of the file. */
export const deductionsHeader = csvLines([['member_id', 'worker_id', 'email', 'amount_decimal', 'currency']])

/**
 * Formats deductions as lines of a file for payroll and spreadsheets. With its amounts replaced by the actual deductions, the
 * same file is a settlement. There is no second column in minor units, which an edited amount would contradict.
 */
export function deductionLines(deductions: DeductionWithWorker[]): string {
  return csvLines(
    deductions.map(({ memberId, workerId, email, amount, currency }) => {
      const decimals = inDecimals({ amount, currency })
      return [memberId, workerId, email, { number: decimals }, currency]
    }),
  )
}
