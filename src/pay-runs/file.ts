import { isIdOf } from '../ids.ts'
import { type Currency, decimalsOf, fromDecimals } from '../money.ts'
import { type Cell, readHeader } from '../tabular/tabular.ts'

const references = ['member_id', 'worker_id', 'email'] as const
const columnNames = [...references, 'amount', 'amount_decimal', 'currency'] as const
// Sheets of payroll name the people too.
const ignored = ['name', 'first_name', 'last_name']
type Column = (typeof columnNames)[number]
export type ReferenceColumn = (typeof references)[number]

/** Which cell of a row holds what; undefined where the file has no such column. */
export type Columns = ReadonlyMap<Column, number>

/**
 * A row of a file of pay, as far as it can be read without knowing the members. A row may name its member in more than one way.
 * `amount` is in major units, with its decimals.
 */
export type FileLine = {
  row: number
  references: { column: ReferenceColumn; value: string }[]
  amount: string
  amountColumn: 'amount' | 'amount_decimal'
  currency: string
}

/**
 * Reads the header. Amounts are in major units, unlike in the files of deductions and settlements, so that a file with both
 * kinds of amounts is refused: its amounts could be paid a hundredfold.
 */
export function readColumns(cells: Cell[]): { columns: Columns; faults: string[] } {
  const { columns, faults } = readHeader<Column>(cells, {
    known: columnNames,
    ignored,
    required: has => [
      ...(references.some(has) ? [] : ['member_id' as const]),
      ...(has('amount_decimal') ? [] : ['amount' as const]),
    ],
  })
  const found = new Map(columns.flatMap((column, index) => (column === null ? [] : [[column, index] as const])))
  const all = [...faults]
  if (!references.some(column => found.has(column))) all.push('worker_id or email may stand in its place')
  if (found.has('amount') && found.has('amount_decimal'))
    all.push(
      'the columns amount and amount_decimal are both there, as in the deductions of a pay cycle; keep one, with amounts such as 120.00',
    )
  return { columns: found, faults: all }
}

/** @returns the line, or all its faults as one message */
export function readLine(row: number, cells: Cell[], columns: Columns): FileLine | string {
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
  const amountColumn = columns.has('amount') ? 'amount' : 'amount_decimal'
  const amount = cell(amountColumn)
  const currency = cell('currency')
  if (faults.length === 0 && named.length === 0) {
    faults.push(`${references.find(each => columns.has(each))}: is empty`)
  }
  if (amount === '' && !faults.some(fault => fault.startsWith(amountColumn))) faults.push(`${amountColumn}: is empty`)
  return faults.length > 0 ? faults.join('; ') : { row, references: named, amount, amountColumn, currency }
}

/**
 * The amount of a line in minor units of the member's currency.
 * @returns a message if it is no such amount
 */
export function amountIn(currency: Currency, line: FileLine): bigint | string {
  if (line.currency !== '' && line.currency !== currency)
    return `currency: must be ${currency}, the currency of the member's pay`
  const amount = fromDecimals(line.amount, currency)
  if (amount !== undefined) return amount
  const decimals = decimalsOf.get(currency) ?? 0
  const example = decimals === 0 ? '120' : `120.${'0'.repeat(decimals)}`
  return `${line.amountColumn}: must be in ${currency}, such as ${example}, without a sign of the currency or separators of thousands`
}
