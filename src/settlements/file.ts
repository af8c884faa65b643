import { isIdOf } from '../kernel/ids.ts'
import { type Currency, decimalsOf } from '../kernel/money.ts'
import type { LineFormat } from '../tabular/reading.ts'
import { type Cell, readAmount, readHeader } from '../tabular/tabular.ts'
import type { Taken } from './rules.ts'

/** A larger settlement would make other requests wait too long. */
export const linesMax = 250_000

const columnNames = ['member_id', 'amount', 'amount_decimal', 'amount_minor', 'currency'] as const
// The deductions file may be sent back with corrected amounts, so its other columns are accepted.
const ignored = ['worker_id', 'email']
type Column = (typeof columnNames)[number]
type Columns = ReadonlyMap<Column, number>

// A settlement is final, and an amount in the wrong unit is wrong a hundredfold.
const ambiguousAmount =
  'the column amount does not say its unit; name it amount_decimal for amounts such as 120.00, or amount_minor for minor units such as 12000'

/** A settlement file. `at` is the row of a line, and the header is row 1. */
export const settlementFile: LineFormat<Columns, Taken> = {
  linesMax,
  tooManyLines: `a settlement has at most ${linesMax} lines`,
  readHeader(cells) {
    const { positions: columns, faults } = readHeader<Column>(cells, {
      known: columnNames,
      ignored,
      required: has => [
        'member_id',
        ...(has('amount') || has('amount_minor') ? [] : ['amount_decimal' as const]),
        'currency',
      ],
    })
    if (columns.has('amount')) faults.push(ambiguousAmount)
    return { columns, faults }
  },
  readLine,
}

/** @returns the line, or all its faults as one message */
function readLine(row: number, cells: Cell[], columns: Columns): Taken | string {
  const cell = (column: Column) => {
    const text = cells[columns.get(column) ?? -1]
    return typeof text === 'string' ? text.trim() : ''
  }
  const [memberId, currency] = [cell('member_id'), cell('currency')]
  const amount = isCurrency(currency)
    ? readAmount(
        {
          ...(columns.has('amount_decimal') && {
            decimal: { column: 'amount_decimal', text: cell('amount_decimal') },
          }),
          ...(columns.has('amount_minor') && { minor: cell('amount_minor') }),
        },
        currency,
      )
    : 'currency must be one of the listed codes, such as GBP'
  const wrong = [
    isIdOf('member', memberId) ? undefined : 'member_id must begin with mem_',
    typeof amount === 'string' ? amount : undefined,
  ].filter(message => message !== undefined)
  if (wrong.length > 0 || typeof amount === 'string' || !isCurrency(currency)) return wrong.join('; ')
  return { memberId, amount, currency, at: row }
}

function isCurrency(text: string): text is Currency {
  return decimalsOf.has(text as Currency)
}
