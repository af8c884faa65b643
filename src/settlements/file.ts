import { issuesMax } from '../errors.ts'
import { isIdOf } from '../ids.ts'
import { type Cell, FileFault, type Row } from '../imports/rows.ts'
import { amountMax, type Currency, decimalsOf } from '../money.ts'
import type { Fault, Taken } from './rules.ts'

/** Lines per settlement; more would make other requests wait too long. */
export const linesMax = 250_000

const required = ['member_id', 'amount', 'currency'] as const
// The other columns of the deductions file, so that the same file can be sent back with the amounts replaced.
const ignored = ['worker_id', 'email', 'amount_decimal']
type Column = (typeof required)[number]

/** The errors of a file: one more than an answer can list, and the number of the others. */
export type FileRead = { faults: Fault[]; faultsMore: number }

/**
 * Reads a settlement file: one header, then one line per member. Case, spaces, hyphens and underscores of column names do not
 * matter; blank rows are passed over. `at` is the row, and the header is row 1.
 * @param take is handed every line that can be read, batch by batch
 */
export async function readSettlement(
  batches: AsyncIterable<Row[]>,
  take: (lines: Taken[]) => Promise<void> | void,
): Promise<FileRead> {
  const read: FileRead = { faults: [], faultsMore: 0 }
  const addFault = (fault: Fault) => {
    if (read.faults.length <= issuesMax) read.faults.push(fault)
    else read.faultsMore += 1
  }
  let columns: Map<Column, number> | undefined
  let count = 0
  let isTooLong = false
  try {
    for await (const batch of batches) {
      const taken: Taken[] = []
      for (const { row, cells, fault } of batch) {
        if (columns === undefined) {
          const header = readHeader(cells.map(textOf))
          if (header.faults.length > 0) return { faults: header.faults.slice(0, issuesMax + 1), faultsMore: 0 }
          columns = header.columns
          continue
        }
        isTooLong = ++count > linesMax
        if (isTooLong) {
          addFault({ at: row, message: `too many lines; a settlement can have at most ${linesMax}` })
          break
        }
        const line = fault ?? readLine(cells, columns)
        if (typeof line === 'string') addFault({ at: row, message: line })
        else taken.push({ ...line, at: row })
      }
      await take(taken)
      if (isTooLong) break
    }
    if (count === 0) addFault({ at: 1, message: 'the file has no lines below the header' })
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    addFault({ at: error.row, message: error.message })
  }
  return read
}

function textOf(cell: Cell | undefined): string {
  return typeof cell === 'string' ? cell.trim() : ''
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

/** @returns the line, or all its errors in one message */
function readLine(cells: Cell[], columns: ReadonlyMap<Column, number>): Omit<Taken, 'at'> | string {
  const cell = (column: Column) => textOf(cells[columns.get(column) ?? -1])
  const memberId = cell('member_id')
  const amount = readAmount(cell('amount'))
  const currency = cell('currency')
  const wrong = [
    isIdOf('member', memberId) ? undefined : 'member_id must start with mem_',
    amount === undefined ? 'amount must be a whole number of minor units, such as 1250' : undefined,
    isCurrency(currency) ? undefined : 'currency must be an ISO 4217 code, such as GBP',
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
