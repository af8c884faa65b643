import { CsvError, parse } from 'csv-parse/sync'
import { delimiterOf } from '../csv.ts'
import { isIdOf } from '../ids.ts'
import { amountMax, type Currency, decimalsOf } from '../money.ts'
import type { Fault, Taken } from './rules.ts'

/** As many members as payroll can settle at once; more would keep the others waiting for too long. */
export const linesMax = 250_000

// An id has 30 characters and an amount 17: a longer row is no settlement.
const rowBytesMax = 4_096

const required = ['member_id', 'amount', 'currency'] as const
// The file of deductions may come back as it went out, with other amounts.
const ignored = ['worker_id', 'email', 'amount_decimal']
type Column = (typeof required)[number]

/**
 * Reads a settlement file: one header, then one line per member, with commas, semicolons or tabs between cells. Case,
 * spaces, hyphens and underscores of column names do not matter; empty lines are passed over.
 * @returns every line that can be read, and what is wrong with the others; `at` is the row, and the header is row 1
 */
export function readSettlementFile(text: string): { taken: Taken[]; faults: Fault[] } {
  const { rows, broken } = split(text)
  const [header = [], ...body] = rows
  const { columns, faults } = readHeader(header)
  if (faults.length > 0) return { taken: [], faults }
  const taken: Taken[] = []
  for (const [index, cells] of body.entries()) {
    const row = index + 2
    if (cells.every(cell => cell === '')) continue
    if (taken.length + faults.length === linesMax) {
      faults.push({ at: row, message: `a settlement has at most ${linesMax} lines` })
      break
    }
    const line = readLine(cells, { columns, width: header.length })
    if (typeof line === 'string') faults.push({ at: row, message: line })
    else taken.push({ ...line, at: row })
  }
  faults.push(...broken)
  if (taken.length + faults.length === 0) faults.push({ at: 1, message: 'there is no line below the header' })
  return { taken, faults }
}

function split(text: string): { rows: string[][]; broken: Fault[] } {
  const rows: string[][] = []
  try {
    parse(text, {
      bom: true,
      delimiter: delimiterOf(text),
      // Left to guess, it would take the header's line end for all, and a file with mixed ones would lose its lines.
      record_delimiter: ['\r\n', '\n', '\r'],
      max_record_size: rowBytesMax,
      // A row with too few or too many cells is named with the others.
      relax_column_count: true,
      trim: true,
      // One more than the largest file tells that it is too large.
      to: linesMax + 2,
      on_record: (cells: string[]) => {
        rows.push(cells)
        return null
      },
    })
    return { rows, broken: [] }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    // After a broken quote nothing can be told apart any more.
    return { rows, broken: [{ at: rows.length + 1, message: messages[error.code] ?? 'it is not well-formed CSV' }] }
  }
}

const messages: Partial<Record<CsvError['code'], string>> = {
  CSV_MAX_RECORD_SIZE: `it is longer than ${rowBytesMax} bytes; is a quote not closed?`,
  CSV_QUOTE_NOT_CLOSED: 'a quote is not closed',
  CSV_INVALID_CLOSING_QUOTE: 'something follows a closing quote',
  INVALID_OPENING_QUOTE: 'a quote stands within a cell',
}

function readHeader(header: string[]): { columns: Map<Column, number>; faults: Fault[] } {
  const columns = new Map<Column, number>()
  const faults: Fault[] = []
  const seen = new Set<string>()
  for (const [index, cell] of header.entries()) {
    const name = [...required, ...ignored].find(known => bare(known) === bare(cell))
    if (name === undefined) {
      if (cell !== '') faults.push({ at: 1, message: `the column ${JSON.stringify(cell.slice(0, 60))} is not known` })
      continue
    }
    if (seen.has(name)) faults.push({ at: 1, message: `the column ${name} stands there twice` })
    seen.add(name)
    if (isRequired(name)) columns.set(name, index)
  }
  for (const name of required) {
    if (!seen.has(name)) faults.push({ at: 1, message: `the column ${name} is missing` })
  }
  return { columns, faults }
}

function isRequired(name: string): name is Column {
  return required.some(known => known === name)
}

function bare(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, '')
}

/** @returns the line, or all that is wrong with it in one sentence */
function readLine(
  cells: string[],
  { columns, width }: { columns: ReadonlyMap<Column, number>; width: number },
): Omit<Taken, 'at'> | string {
  if (cells.length !== width) return `it has ${cells.length} cells, and the header ${width}`
  const cell = (column: Column) => cells[columns.get(column) ?? -1] ?? ''
  const memberId = cell('member_id')
  const amount = readAmount(cell('amount'))
  const currency = cell('currency')
  const wrong = [
    isIdOf('member', memberId) ? undefined : 'member_id must begin with mem_',
    amount === undefined ? 'amount must be a whole number of minor units, such as 1250' : undefined,
    isCurrency(currency) ? undefined : 'currency must be one of the listed codes, such as GBP',
  ].filter(message => message !== undefined)
  if (wrong.length > 0 || amount === undefined || !isCurrency(currency)) return wrong.join('; ')
  return { memberId, amount, currency }
}

function readAmount(text: string): bigint | undefined {
  if (!/^(0|-?[1-9][0-9]{0,15})$/.test(text)) return undefined
  const amount = BigInt(text)
  const largest = BigInt(amountMax)
  return amount <= largest && amount >= -largest ? amount : undefined
}

function isCurrency(text: string): text is Currency {
  return decimalsOf.has(text as Currency)
}
