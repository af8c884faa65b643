import { serveReads } from '../reader-threads.ts'
import { FileFault } from './fault.ts'
import type { SheetFile, SheetRead } from './reading.ts'
import type { Row } from './rows.ts'
import { readRows } from './tabular.ts'

// Runs in a worker thread: reads the rows of a file of any kind.
serveReads<SheetFile, Row[], SheetRead>(
  async (file, send) => {
    try {
      for await (const rows of readRows(file)) await send(rows)
    } catch (error) {
      if (!(error instanceof FileFault)) throw error
      // An error would lose its class and its row on the way to the main thread.
      return { fault: { row: error.row, message: error.message } }
    }
    return { fault: null }
  },
  { batchesAhead: 2 },
)
