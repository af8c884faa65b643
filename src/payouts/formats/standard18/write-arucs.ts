import { stringify } from 'csv-stringify/sync'
import { inDecimals } from '../../../kernel/money.ts'
import type { Answer, AnswersToWrite, WriteAnswers } from '../answers.ts'
import type { ArucsOptions } from './read-arucs.ts'

/**
 * Writes ARUCS as CSV, in the columns that `arucsReader` reads with the same options.
 * @throws Error for a payment that is not `returned`: ARUCS says nothing about others
 */
export function arucsCsvWriter(options: ArucsOptions & { format: 'csv' }): WriteAnswers {
  const { columns, delimiter = ',', amountIn = 'pounds' } = options
  const line = (cells: string[]) => stringify([cells], { delimiter, record_delimiter: 'windows' })
  const cellsOf = ({ reference, amount, reasonCode, reasonText }: Answer): Record<keyof typeof columns, string> => ({
    reference,
    amount: amountIn === 'pence' ? `${amount}` : inDecimals({ amount, currency: 'GBP' }),
    reasonCode: reasonCode ?? '',
    // A row is one line.
    reasonText: (reasonText ?? '').replace(/\s+/g, ' '),
    currency: 'GBP',
  })
  const fields = Object.keys(columns) as (keyof typeof columns)[]
  return async function* ({ currency, answers }: AnswersToWrite) {
    if (currency !== 'GBP') throw new Error(`ARUCS is in GBP, not in ${currency}`)
    yield line(fields.map(field => columns[field] ?? ''))
    for await (const answer of answers) {
      if (answer.state !== 'returned') throw new Error(`ARUCS cannot say that a payment is ${answer.state}`)
      const cells = cellsOf(answer)
      yield line(fields.map(field => cells[field]))
    }
  }
}
