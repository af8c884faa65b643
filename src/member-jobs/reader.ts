import { parentPort, workerData } from 'node:worker_threads'
import { toColumns } from '../bank-accounts/rules.ts'
import { newId } from '../ids.ts'
import { FileFault, readRows } from '../imports/rows.ts'
import { settleNew } from '../members/rules.ts'
import type { Currency } from '../money.ts'
import { type Column, type RowRead, readHeader, readRow } from './columns.ts'
import type { Fault, Message, Reading } from './reading.ts'
import { Seen } from './seen.ts'

// A thread of its own: reads a file row by row, checks every row by itself, and hands on the rows as PostgreSQL's COPY takes
// them. It knows neither the database nor the other members.

// As many faults as an answer holds; of the others only the number is of use.
const faultsMax = 1_000
// A file with that many faults is not counted to its end at any price.
const countMsMax = 2_500
// Rows that are on their way to the database at once, in batches; more would only fill the memory.
const ahead = 4

const { file, partnerId, jobId, country, today, tiers, now } = workerData as Reading
const port = parentPort
if (port === null) throw new Error('This module is run in a thread')

const currencies = new Map<string, Currency>(tiers)
const facts = { country, today, tierNames: tiers.map(([name]) => name) }
let header: (Column | null)[] | undefined
const faults: Fault[] = []
let faultsMore = 0
let rowCount = 0
const seen = { email: new Seen(), worker_id: new Seen() }
let readTo = 1

let credits = ahead
let wake: (() => void) | undefined
port.on('message', () => {
  credits += 1
  wake?.()
})

const startedAt = performance.now()
try {
  for await (const batch of readRows(file)) {
    let text = ''
    for (const { row, cells, fault } of batch) {
      readTo = row
      if (header === undefined) {
        const read = readHeader(cells)
        header = read.header
        for (const message of read.faults) addFault({ row, message })
        if (read.faults.length > 0) break
        continue
      }
      rowCount += 1
      const read = fault === undefined ? readRow(cells, header) : [fault]
      if (Array.isArray(read)) addFault({ row, message: read.join('; ') })
      else text += lineOf(row, read)
    }
    if (faults.length > 0 && header !== undefined && rowCount === 0) break
    if (text !== '') await send({ rows: Buffer.from(text) })
    if (faultsMore > 0 && performance.now() - startedAt > countMsMax) break
  }
} catch (error) {
  if (!(error instanceof FileFault)) throw error
  addFault({ row: error.row, message: error.message })
}
if (header === undefined && faults.length === 0) addFault({ row: 1, message: 'the file is empty; it needs a header' })
const columns = (header ?? []).filter(column => column !== null)
const perhapsRepeated = (['email', 'worker_id'] as const).filter(column => seen[column].hasPerhapsTwice)
port.postMessage({ end: { columns, rowCount, faults, faultsMore, perhapsRepeated, readTo } } satisfies Message)
port.close()

function addFault(fault: Fault): void {
  if (faults.length < faultsMax) faults.push(fault)
  else faultsMore += 1
}

async function send(message: { rows: Buffer }): Promise<void> {
  while (credits === 0) {
    await new Promise<void>(resolve => {
      wake = resolve
    })
  }
  credits -= 1
  port?.postMessage(message satisfies Message)
}

// One line of COPY in its text format.
function lineOf(row: number, { body, enablePayroll }: RowRead): string {
  const { profile, faults } = settleNew(body, { ...facts, tierCurrency: currencies.get(body.tier) })
  const { email, firstName, lastName, phone, tier, workerId, accountDetails, dob, gender } = profile
  const { accountHolder, sortCode, accountNumber, iban } = toColumns(accountDetails)
  seen.email.add(email.toLowerCase())
  if (workerId !== null) seen.worker_id.add(workerId)
  const cells = [
    ...[partnerId, jobId, row, newId('member', now), email, firstName, lastName, phone, tier, workerId],
    ...[accountHolder, sortCode, accountNumber, iban, dob, gender, enablePayroll],
    faults.length === 0 ? null : faults.join('; '),
  ]
  return `${cells.map(escaped).join('\t')}\n`
}

function escaped(cell: string | number | boolean | null): string {
  if (cell === null) return '\\N'
  if (typeof cell !== 'string') return String(cell)
  return /[\\\t\n\r]/.test(cell) ? cell.replace(/[\\\t\n\r]/g, letter => escapes[letter] ?? '') : cell
}

const escapes: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }
