import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { Column } from '../members/fields.ts'
import type { Currency } from '../money.ts'
import { ReaderExhausted, ReaderThreads } from '../reader-threads.ts'
import type { Day } from '../time.ts'

/** A fault in a row of a file; the header is row 1. */
export type Fault = { row: number; message: string }

/** Input of the reader thread. */
export type Reading = {
  file: { fd: number; kind: 'csv' | 'xlsx' }
  partnerId: string
  jobId: string
  country: string
  today: Day
  tiers: [name: string, currency: Currency][]
  now: Date
}

/** Result of the reader thread. */
export type Read = {
  /** Columns, in the order of the file. */
  columns: Column[]
  /** Rows below the header, including faulty ones. */
  rowCount: number
  /** At most `issuesMax`. */
  faults: Fault[]
  /** Number of further faulty rows. */
  faultsMore: number
  /** Columns that may contain duplicates; the database finds the rows. */
  mayBeRepeated: Column[]
  /** The last row that was looked at, before too many faults ended the reading. */
  readTo: number
}

// Of a file only a batch of rows is held. The texts that the cells of a workbook share are held outside the heap.
const heapMbMax = 128

// A reader holds its heap and a connection. A further file waits for a moment, and is then told when to come back. A million rows take ten
// seconds; a file that stands still for twenty never ends.
const threads = new ReaderThreads<Reading, Uint8Array, Read>(new URL('./read-thread.ts', import.meta.url), {
  threadsMax: 2,
  // Less than a transaction may be idle, as the caller's is.
  waitMsMax: 5_000,
  idleMsMax: 10_000,
  silenceMsMax: 20_000,
})

/**
 * Reads a file in a worker thread with a limited heap, and copies its rows where
 * `openCopy` leads to. The rows of a file with faults are copied as far as they have none themselves.
 * @param reading with the `signal` of a caller who has hung up
 * @throws Problem `ServiceUnavailable` when too many files are being read already
 */
export async function readInto(
  openCopy: () => Writable,
  { signal, ...reading }: Reading & { signal: AbortSignal },
): Promise<Read> {
  let copy: Writable | undefined
  // Opened only once there is a thread, since an open copy must be ended.
  const copying = () => {
    copy ??= openCopy()
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
    const broken = copy?.errored
    copy?.on('error', () => undefined).destroy()
    // The error that broke the copy is more useful than the failed write that follows it.
    if (broken) throw broken
    if (error instanceof ReaderExhausted) return tooMuch
    throw error
  }
}

const tooMuch: Read = {
  ...{ columns: [], rowCount: 0, faultsMore: 0, mayBeRepeated: [], readTo: 1 },
  faults: [
    { row: 1, message: 'the file is too large or too intricate to be read; save it as CSV, or send less at once' },
  ],
}
