import { serveReads } from '../reader-threads.ts'
import { readRows } from '../tabular/tabular.ts'
import { type FileRead, readSettlement } from './file.ts'
import type { Taken } from './rules.ts'

// Runs in a worker thread: reads a settlement file and checks each line on its own.
serveReads<{ fd: number }, Taken[], FileRead>(
  async ({ fd }, send) => await readSettlement(readRows({ fd, kind: 'csv' }), send),
  { batchesAhead: 2 },
)
