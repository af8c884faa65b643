import { issuesMax } from '../kernel/errors.ts'
import { isIdOf } from '../kernel/ids.ts'
import { type Currency, decimalsOf } from '../kernel/money.ts'
import { type Cell, FileFault, type Row, readAmount, readHeader } from '../tabular/tabular.ts'
import type { LineFault, Taken } from './rules.ts'

/** A larger settlement would make other requests wait too long. */
export const linesMax = 250_000

const columnNames = ['member_id', 'amount', 'amount_decimal', 'amount_minor', 'currency'] as const
// The deductions file may be sent back with corrected amounts, so its other columns are accepted.
const ignored = ['worker_id', 'email']
type Column = (typeof columnNames)[number]

// A settlement is final, and an amount in the wrong unit is wrong a hundredfold.
const ambiguousAmount =
  'the column amount does not say its unit; name it amount_decimal for amounts such as 120.00, or amount_minor for minor units such as 12000'

/** The faults of a file: at most one more than a response names, and the number of the others. */
export type FileRead = { faults: LineFault[]; faultsMore: number }

/**
 * Reads a settlement file: one header, then one line per member. `at` is the row, and the header is row 1.
 * @param take receives every readable line, in batches
 */
export async function readSettlement(
  batches: AsyncIterable<Row[]>,
  take: (lines: Taken[]) => Promise<void> | void,
): Promise<FileRead> {
  const read: FileRead = { faults: [], faultsMore: 0 }
  const addFault = (fault: LineFault) => {
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
          const header = readColumns(cells)
          if (header.faults.length > 0)
            return { faults: header.faults.map(message => ({ at: 1, message })), faultsMore: 0 }
          columns = header.columns
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

function readColumns(cells: Cell[]): { columns: Map<Column, number>; faults: string[] } {
  const { columns, faults } = readHeader<Column>(cells, {
    known: columnNames,
    ignored,
    required: has => [
      'member_id',
      ...(has('amount') || has('amount_minor') ? [] : ['amount_decimal' as const]),
      'currency',
    ],
  })
  if (columns.includes('amount')) faults.push(ambiguousAmount)
  return { columns: new Map(columns.flatMap((column, index) => (column === null ? [] : [[column, index]]))), faults }
}

/** @returns the line, or all its faults as one message */
function readLine(cells: Cell[], columns: ReadonlyMap<Column, number>): Omit<Taken, 'at'> | string {
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
  return { memberId, amount, currency }
}

function isCurrency(text: string): text is Currency {
  return decimalsOf.has(text as Currency)
}
