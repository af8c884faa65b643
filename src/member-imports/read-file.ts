import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { Currency } from '../kernel/money.ts'
import type { Day } from '../kernel/time.ts'
import type { Column } from '../members/fields.ts'
import { ReaderExhausted, ReaderThreads } from '../reader-threads.ts'
import type { InstallationKey } from '../sealing/sealer.ts'
import type { TableKind } from '../tabular/tabular.ts'

/** A fault of a row of a file; the header is row 1. */
export type RowFault = { row: number; messages: string[] }

/** Input of the reader thread. */
export type Reading = {
  file: { fd: number; kind: TableKind }
  partnerId: string
  importId: string
  country: string
  today: Day
  tiers: [name: string, currency: Currency][]
  now: Date
  /** The bytes of the key that seals the rows. */
  key: Uint8Array
  /** Make the fingerprints. */
  installationKeys: readonly InstallationKey[]
}

/** Result of the reader thread. */
export type Read = {
  /** Columns, in the order of the file. */
  columns: Column[]
  /** Rows below the header, including faulty ones. */
  rowCount: number
  /** At most `issuesMax`. */
  faults: RowFault[]
  /** Number of further faulty rows. */
  faultsMore: number
  /** Columns that may contain duplicates; the database finds the rows. */
  mayBeRepeated: Column[]
  /** The last row that was read; too many faults end the reading early. */
  readTo: number
}

// Only a batch of rows is held in memory. The shared strings of a workbook are kept outside the heap.
const heapMbMax = 128

// Each reader holds a heap and a connection. Another file waits briefly and is then refused with a time to retry. A million rows take
// ten seconds, so a file without progress for twenty never ends.
const threads = new ReaderThreads<Reading, Uint8Array, Read>(new URL('./read-thread.ts', import.meta.url), {
  threadsMax: 2,
  // Less than the caller's transaction may be idle.
  waitMsMax: 5_000,
  idleMsMax: 10_000,
  silenceMsMax: 20_000,
})

/**
 * Reads a file in a worker thread with a limited heap, and copies its rows into the stream that `openCopy` opens. Cells that
 * cannot be read are copied as if they were empty, so that the rest of the row is compared too.
 * @param reading `signal` aborts when the caller disconnects
 * @throws Problem `ServiceUnavailable` if too many files are being read already
 */
export async function readInto(
  openCopy: () => Writable,
  { signal, ...reading }: Reading & { signal: AbortSignal },
): Promise<Read> {
  let copy: Writable | undefined
  let failure: Error | undefined
  // Opened only when a thread is available, since an open copy must be ended. PostgreSQL can refuse a row at any time, also between
  // two writes.
  const copying = () => {
    copy ??= openCopy().on('error', error => {
      failure ??= error
    })
    if (failure !== undefined) throw failure
    return copy
  }
  try {
    const read = await threads.read(reading, {
      heapMbMax,
      isKept: true,
      signal,
      async onBatch(rows) {
        if (!copying().write(rows)) await once(copying(), 'drain')
      },
    })
    await finished(copying().end())
    return read
  } catch (error) {
    copy?.destroy()
    // The error that broke the copy is more useful than the failed write that follows it.
    if (failure !== undefined) throw failure
    if (error instanceof ReaderExhausted) return tooMuch
    throw error
  }
}

const tooMuch: Read = {
  ...{ columns: [], rowCount: 0, faultsMore: 0, mayBeRepeated: [], readTo: 1 },
  faults: [
    { row: 1, messages: ['the file is too large or too intricate to be read; save it as CSV, or send less at once'] },
  ],
}
