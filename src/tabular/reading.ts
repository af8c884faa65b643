import { ReaderExhausted, ReaderThreads } from '../reader-threads.ts'
import { FileFault } from './fault.ts'
import type { Row, TableKind } from './rows.ts'

/** An open file, given by its descriptor. */
export type SheetFile = { fd: number; kind: TableKind }

/** Result of the reader thread: the fault that stopped it, or null. */
export type SheetRead = { fault: { row: number; message: string } | null }

// A read without progress for twenty seconds has hung.
const threads = new ReaderThreads<SheetFile, Row[], SheetRead>(new URL('./reader.ts', import.meta.url), {
  threadsMax: 2,
  waitMsMax: 10_000,
  idleMsMax: 10_000,
  silenceMsMax: 20_000,
})

// Only a few batches of rows are in memory at a time. The shared strings of a workbook are kept outside the heap.
const heapMbMax = 128

/**
 * Reads a file in a worker thread, from the header on.
 * @param signal aborts the read when the client disconnects
 * @param onBatch receives the rows in batches; an error that it throws ends the read
 * @throws FileFault if the file cannot be read to its end; Problem `ServiceUnavailable` if too many files are already being read
 */
export async function readSheet(
  file: SheetFile,
  { signal, onBatch }: { signal: AbortSignal; onBatch: (rows: Row[]) => Promise<void> | void },
): Promise<void> {
  try {
    const { fault } = await threads.read(file, { heapMbMax, isKept: true, signal, onBatch })
    if (fault !== null) throw new FileFault(fault.row, fault.message)
  } catch (error) {
    if (!(error instanceof ReaderExhausted)) throw error
    throw new FileFault(1, 'The file needs too much memory to read; save it again as a plain CSV file')
  }
}
