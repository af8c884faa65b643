import { isIdOf } from '../kernel/ids.ts'
import type { Currency } from '../kernel/money.ts'
import type { LineFormat } from '../tabular/reading.ts'
import { type AmountCells, type Cell, readAmount, readHeader } from '../tabular/tabular.ts'

/** A larger file would take memory from other requests. */
const linesMax = 250_000

const references = ['member_id', 'worker_id', 'email'] as const
const columnNames = [...references, 'amount', 'amount_decimal', 'amount_minor', 'currency'] as const
// Payroll's sheets also have the names of people.
const ignored = ['name', 'first_name', 'last_name']
type Column = (typeof columnNames)[number]
export type ReferenceColumn = (typeof references)[number]

/** The position of each column's cell in a row; no entry if the file does not have the column. */
type Columns = ReadonlyMap<Column, number>

/**
 * A row of a file of pay, as far as it can be read without knowing the members. A row may name its member in more than one way.
 */
export type FileLine = {
  row: number
  references: { column: ReferenceColumn; value: string }[]
  amount: AmountCells
  currency: string
}

/** A file of pay. `amount` and `amount_decimal` are in major units with decimals, `amount_minor` in minor units. */
export const payFile: LineFormat<Columns, FileLine> = {
  linesMax,
  tooManyLines: `a file has at most ${linesMax} lines; send it in parts`,
  readHeader(cells) {
    const { positions: columns, faults } = readHeader<Column>(cells, {
      known: columnNames,
      ignored,
      required: has => [
        ...(references.some(has) ? [] : ['member_id' as const]),
        ...(has('amount_decimal') || has('amount_minor') ? [] : ['amount' as const]),
      ],
    })
    if (!references.some(column => columns.has(column))) faults.push('use worker_id or email instead')
    if (columns.has('amount') && columns.has('amount_decimal'))
      faults.push('the file has both amount and amount_decimal; keep one, with amounts such as 120.00')
    return { columns, faults }
  },
  readLine,
}

function readLine(row: number, cells: Cell[], columns: Columns): FileLine | string {
  const faults: string[] = []
  const cell = (column: Column) => {
    const value = cells[columns.get(column) ?? -1] ?? ''
    if (typeof value === 'string') return value.trim()
    // As many digits as Excel shows: a sum such as 0.1 + 0.2 is stored with more.
    if (typeof value === 'number' && column.startsWith('amount')) return String(Number(value.toPrecision(15)))
    faults.push(
      typeof value === 'number'
        ? `${column}: the cell is a number (${value}), which loses leading zeros; format the column as text and type it again`
        : `${column}: the cell must hold ${column.startsWith('amount') ? 'a number or text' : 'text'}`,
    )
    return ''
  }
  const named = references.flatMap(column => {
    const value = cell(column)
    return value === '' ? [] : [{ column, value }]
  })
  for (const { column, value } of named) {
    if (column === 'member_id' && !isIdOf('member', value)) faults.push('member_id: must begin with mem_')
  }
  const decimalColumn = (['amount', 'amount_decimal'] as const).find(column => columns.has(column))
  const amount = {
    ...(decimalColumn && { decimal: { column: decimalColumn, text: cell(decimalColumn) } }),
    ...(columns.has('amount_minor') && { minor: cell('amount_minor') }),
  }
  const currency = cell('currency')
  if (faults.length === 0 && named.length === 0) {
    faults.push(`${references.find(each => columns.has(each))}: is empty`)
  }
  return faults.length > 0 ? faults.join('; ') : { row, references: named, amount, currency }
}

/**
 * The amount of a line in minor units of the member's currency.
 * @returns a message if the text is not a valid amount
 */
export function amountIn(currency: Currency, line: FileLine): bigint | string {
  if (line.currency !== '' && line.currency !== currency)
    return `currency: must be ${currency}, the currency of the member's pay`
  return readAmount(line.amount, currency)
}
