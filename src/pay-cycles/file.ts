import { inDecimals } from '../kernel/money.ts'
import { csvLines } from '../tabular/tabular.ts'
import type { DeductionWithWorker } from './deductions.ts'

/** The first line of the file. */
export const deductionsHeader = csvLines([['member_id', 'worker_id', 'email', 'amount_decimal', 'currency']])

/**
 * Deductions as lines of a file for payroll and for spreadsheets. The same file, with the amounts that were actually deducted, is
 * a settlement. It has no second column in minor units, which an edited amount would contradict.
 */
export function deductionLines(deductions: DeductionWithWorker[]): string {
  return csvLines(
    deductions.map(({ memberId, workerId, email, amount, currency }) => {
      const decimals = inDecimals({ amount, currency })
      return [memberId, workerId, email, { number: decimals }, currency]
    }),
  )
}
