import { issuesMax } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import { foldEmail } from '../members/email.ts'
import { byColumn, type Column } from '../members/fields.ts'
import { cellsOf } from '../members/rows.ts'
import { normaliseNew, type ProfileFacts } from '../members/rules.ts'
import type { NewMember } from '../members/schema.ts'
import { fingerprintsOf } from '../members/sealing.ts'
import { serveReads } from '../reader-threads.ts'
import { Sealer } from '../sealing/sealer.ts'
import { FileFault, readRows } from '../tabular/tabular.ts'
import { copyLine } from './copy.ts'
import { DuplicateFilter } from './duplicate-filter.ts'
import { importKey } from './import-key.ts'
import { type RowRead, readHeader, rowReader } from './read.ts'
import type { Read, Reading, RowFault } from './read-file.ts'
import { sealRow } from './rows.ts'
import { unreadText } from './rules.ts'

// Runs in a worker thread: reads a file row by row, checks each row on its own, and sends the rows in the format of
// PostgreSQL's COPY. It has no access to the database or the other members.

// How long faults are counted after a response has no room for more.
const countMsMax = 2_500
// More batches in flight would only fill the memory.
serveReads<Reading, Uint8Array, Read>(read, { batchesAhead: 4 })

async function read(reading: Reading, send: (rows: Uint8Array) => Promise<void>): Promise<Read> {
  const faults: RowFault[] = []
  const read: Read = { columns: [], rowCount: 0, faults, faultsMore: 0, mayBeRepeated: [], readTo: 1 }
  const addFault = (fault: RowFault) => {
    // Beyond the limit, faults are only counted.
    if (faults.length < issuesMax) faults.push(fault)
    else read.faultsMore += 1
  }
  const seen = { email: new DuplicateFilter(), worker_id: new DuplicateFilter() }
  const lineOf = copyLines(reading, seen)
  const startedAt = performance.now()
  let readRow: ReturnType<typeof rowReader> | undefined
  try {
    for await (const batch of readRows(reading.file)) {
      const lines: string[] = []
      for (const { row, cells, fault } of batch) {
        read.readTo = row
        if (readRow === undefined) {
          const { header, faults } = readHeader(cells)
          if (faults.length > 0) {
            addFault({ row, messages: faults })
            return read
          }
          readRow = rowReader(header)
          read.columns = header.filter(column => column !== null && column !== 'action')
          continue
        }
        read.rowCount += 1
        if (fault !== undefined) {
          addFault({ row, messages: [fault] })
          continue
        }
        const { line, faults } = lineOf(row, readRow(cells))
        if (faults.length > 0) addFault({ row, messages: faults })
        lines.push(line)
      }
      if (lines.length > 0) await send(Buffer.from(`${lines.join('\n')}\n`))
      if (read.faultsMore > 0 && performance.now() - startedAt > countMsMax) break
    }
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    addFault({ row: error.row, messages: [error.message] })
  }
  if (readRow === undefined && faults.length === 0) {
    addFault({ row: 1, messages: ['the file is empty; it needs a header'] })
  }
  read.mayBeRepeated = (['email', 'worker_id'] as const).filter(column => seen[column].mayHaveRepeated)
  return read
}

// Formats a row for COPY, and lists its faults that hold for any member. Faults that do not count if the member already has the
// value are stored with the row. It runs a million times, so it avoids copying objects.
function copyLines(
  { partnerId, importId, country, today, tiers, now, key: keyBytes, installationKeys }: Reading,
  seen: { email: DuplicateFilter; worker_id: DuplicateFilter },
): (row: number, read: RowRead) => { line: string; faults: string[] } {
  const facts: ProfileFacts = { country, today, tierCurrencies: new Map(tiers) }
  // Accepts a tier that could not be read, which has already been reported.
  const unreadTier: ProfileFacts = { ...facts, tierCurrencies: new Map([[unreadText, 'GBP']]) }
  const sealer = new Sealer(installationKeys)
  const key = importKey(Buffer.from(keyBytes), { partnerId, importId })
  const unread = { email: unreadText, firstName: unreadText, lastName: unreadText, tier: unreadText }
  return (row, { body: read, faults: unreadable }) => {
    const isRead = unreadable.length === 0
    // Without unreadable cells, every required field has a value.
    const body = isRead ? (read as NewMember) : { ...unread, ...read }
    const { profile, faults } = normaliseNew(body, read.tier === undefined ? unreadTier : facts)
    // No member can have a tier that does not exist.
    const isPossible = isRead && facts.tierCurrencies.has(body.tier)
    if (profile.email !== unreadText) seen.email.add(foldEmail(profile.email))
    if (profile.workerId !== null) seen.worker_id.add(profile.workerId)
    const cellOf = cellsOf(profile)
    const own = {
      ...{ partnerId, importId, row, newMemberId: newId('member', now), sealed: sealRow(key, row, profile) },
      faults: isPossible && faults.length > 0 ? faults.join('; ') : null,
    }
    return {
      // Null, not the default: the row may be about a member who has another value.
      line: copyLine(own, {
        plain: column => (isAbsent(body, column) ? null : cellOf(column)),
        fingerprints: fingerprintsOf(sealer, partnerId, profile),
      }),
      faults: isPossible ? [] : [...unreadable, ...faults],
    }
  }
}

function isAbsent(body: NewMember, column: Column): boolean {
  const field = keptIfAbsent[column]
  return field !== null && body[field] === undefined
}

const keptIfAbsent = byColumn(({ field, emptyCell }) => (emptyCell === 'keeps' ? field : null))
