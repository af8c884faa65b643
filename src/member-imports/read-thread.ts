import { issuesMax } from '../errors.ts'
import { newId } from '../ids.ts'
import { columnSpecs } from '../members/fields.ts'
import { columnsOf } from '../members/rows.ts'
import { normaliseNew } from '../members/rules.ts'
import type { NewMember } from '../members/schema.ts'
import { serveReads } from '../reader-threads.ts'
import { FileFault, readRows } from '../tabular/tabular.ts'
import { type CopiedRow, copiedColumns } from './copy.ts'
import { DuplicateFilter } from './duplicate-filter.ts'
import { type Header, type RowRead, readHeader, readRow } from './read.ts'
import type { Fault, Read, Reading } from './read-file.ts'

// Runs in a worker thread: reads a file row by row, checks each row on its own, and sends the rows in the format of
// PostgreSQL's COPY. It has no access to the database or the other members.

// A file with more faults than a response holds is counted only for this long.
const countMsMax = 2_500
// More batches would only fill the memory.
serveReads<Reading, Uint8Array, Read>(read, { batchesAhead: 4 })

async function read(reading: Reading, send: (rows: Uint8Array) => Promise<void>): Promise<Read> {
  const faults: Fault[] = []
  const read: Read = { columns: [], rowCount: 0, faults, faultsMore: 0, mayBeRepeated: [], readTo: 1 }
  const addFault = (fault: Fault) => {
    // Beyond the limit, faults are only counted.
    if (faults.length < issuesMax) faults.push(fault)
    else read.faultsMore += 1
  }
  const seen = { email: new DuplicateFilter(), worker_id: new DuplicateFilter() }
  const lineOf = copyLines(reading, seen)
  const startedAt = performance.now()
  let header: Header | undefined
  try {
    for await (const batch of readRows(reading.file)) {
      let text = ''
      for (const { row, cells, fault } of batch) {
        read.readTo = row
        if (header === undefined) {
          const found = readHeader(cells)
          header = found.header
          if (found.faults.length > 0) {
            addFault({ row, message: found.faults.join('; ') })
            return read
          }
          read.columns = header.filter(column => column !== null && column !== 'action')
          continue
        }
        read.rowCount += 1
        const line = fault === undefined ? lineOf(row, readRow(cells, header)) : [fault]
        if (Array.isArray(line)) addFault({ row, message: line.join('; ') })
        else text += line
      }
      if (text !== '') await send(Buffer.from(text))
      if (read.faultsMore > 0 && performance.now() - startedAt > countMsMax) break
    }
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    addFault({ row: error.row, message: error.message })
  }
  if (header === undefined && faults.length === 0) addFault({ row: 1, message: 'the file is empty; it needs a header' })
  read.mayBeRepeated = (['email', 'worker_id'] as const).filter(column => seen[column].mayHaveRepeated)
  return read
}

// Returns a row as a line in COPY's text format, or its faults that hold for any member.
function copyLines(
  { partnerId, jobId, country, today, tiers, now }: Reading,
  seen: { email: DuplicateFilter; worker_id: DuplicateFilter },
): (row: number, read: RowRead) => string | string[] {
  const currencies = new Map(tiers)
  const anyCurrency = 'GBP'
  const unread = { email: '', firstName: '', lastName: '', tier: '' }
  const facts = { country, today, tierNames: tiers.map(([name]) => name) }
  return (row, { body: read, faults: unreadable }) => {
    // Unreadable cells have been reported already.
    const body = { ...unread, ...read }
    const isTierRead = read.tier !== undefined
    const tierCurrency = isTierRead ? currencies.get(body.tier) : anyCurrency
    const { profile, faults } = normaliseNew(body, { ...facts, tierCurrency })
    // No member can have a tier that does not exist.
    if (unreadable.length > 0 || tierCurrency === undefined) return [...unreadable, ...faults]
    seen.email.add(profile.email.toLowerCase())
    if (profile.workerId !== null) seen.worker_id.add(profile.workerId)
    const copied: CopiedRow = {
      ...columnsOf(profile),
      // Null, not the default: the row may be about a member who has another value.
      ...absentIn(body),
      partnerId,
      jobId,
      row,
      newMemberId: newId('member', now),
      faults: faults.length === 0 ? null : faults.join('; '),
    }
    return `${copiedColumns.map(({ key }) => escaped(copied[key])).join('\t')}\n`
  }
}

function absentIn(body: NewMember): Partial<CopiedRow> {
  const absent = columnSpecs.filter(({ emptyCell, field }) => emptyCell === 'keeps' && body[field] === undefined)
  return Object.fromEntries(absent.map(({ key }) => [key, null]))
}

function escaped(cell: string | number | boolean | null): string {
  if (cell === null) return '\\N'
  if (typeof cell !== 'string') return String(cell)
  return /[\\\t\n\r]/.test(cell) ? cell.replace(/[\\\t\n\r]/g, letter => escapes[letter] ?? '') : cell
}

const escapes: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }
