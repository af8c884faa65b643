import { ReaderExhausted, ReaderThreads } from '../reader-threads.ts'
import { FileFault } from './fault.ts'
import type { Cell, Row, TableKind } from './rows.ts'

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

/** A kind of file that has a header and then one line per row. */
export type LineFormat<Columns, Line> = {
  linesMax: number
  /** The fault of a file with more lines. */
  tooManyLines: string
  /** @returns columns that are unusable if there are `faults` */
  readHeader(cells: Cell[]): { columns: Columns; faults: string[] }
  /** @returns the line, or all its faults as one message */
  readLine(row: number, cells: Cell[], columns: Columns): Line | string
}

type LineHandlers<Line> = {
  signal: AbortSignal
  onLines: (lines: Line[]) => Promise<void> | void
  onFault: (row: number, message: string) => void
}

/**
 * Reads the lines of a file in a worker thread, as `readSheet`.
 * @param onLines receives the readable lines in batches
 * @param onFault receives the faults of a row as one message
 * @returns the number of lines, including those with faults
 */
export async function readLines<Columns, Line>(
  file: SheetFile,
  { linesMax, tooManyLines, readHeader, readLine }: LineFormat<Columns, Line>,
  { signal, onLines, onFault }: LineHandlers<Line>,
): Promise<number> {
  let columns: Columns | undefined
  let count = 0
  const onBatch = async (rows: Row[]) => {
    const lines: Line[] = []
    for (const { row, cells, fault } of rows) {
      if (columns === undefined) {
        const header = readHeader(cells)
        if (header.faults.length > 0) throw new FileFault(1, header.faults.join('; '))
        columns = header.columns
        continue
      }
      count += 1
      if (count > linesMax) throw new FileFault(row, tooManyLines)
      const line = fault ?? readLine(row, cells, columns)
      if (typeof line === 'string') onFault(row, line)
      else lines.push(line)
    }
    await onLines(lines)
  }
  try {
    await readSheet(file, { signal, onBatch })
    if (count === 0) onFault(1, 'the file has no lines below the header')
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    onFault(error.row, error.message)
  }
  return count
}
