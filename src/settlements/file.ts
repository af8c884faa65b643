import { issuesMax } from '../errors.ts'
import { isIdOf } from '../ids.ts'
import { amountMax, type Currency, decimalsOf } from '../money.ts'
import { type Cell, FileFault, type Row, readHeader } from '../tabular/tabular.ts'
import type { Fault, Taken } from './rules.ts'

/** Lines of one settlement. More would make other requests wait too long. */
export const linesMax = 250_000

const columnNames = ['member_id', 'amount', 'currency'] as const
// The deductions file may be sent back with corrected amounts, so its other columns are accepted.
const ignored = ['worker_id', 'email', 'amount_decimal']
type Column = (typeof columnNames)[number]

/** The faults of a file: one more than a response names, and the number of the others. */
export type FileRead = { faults: Fault[]; faultsMore: number }

/**
 * Reads a settlement file: one header, then one line per member. `at` is the row, and the header is row 1.
 * @param take receives every readable line, in batches
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
          const header = readHeader(cells, { known: columnNames, ignored, required: () => [...columnNames] })
          if (header.faults.length > 0)
            return { faults: header.faults.map(message => ({ at: 1, message })), faultsMore: 0 }
          columns = new Map(header.columns.flatMap((column, index) => (column === null ? [] : [[column, index]])))
          continue
        }
        isTooLong = ++count > linesMax
        if (isTooLong) {
          addFault({ at: row, message: `a settlement has at most ${linesMax} lines` })
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

/** @returns the line, or all its faults as one message */
function readLine(cells: Cell[], columns: ReadonlyMap<Column, number>): Omit<Taken, 'at'> | string {
  const cell = (column: Column) => textOf(cells[columns.get(column) ?? -1])
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
