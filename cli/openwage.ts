#!/usr/bin/env node
import { run } from './run.ts'

// The reader may close the pipe early, as in `openwage key list … | head -1`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return
  console.error(`openwage: ${error.message}`)
  process.exitCode = 1
})

const code = await run(process.argv.slice(2), process)
// Not process.exit: the output may still be on its way into a pipe. A failed write has set the exit code already.
if (code !== 0) process.exitCode = code
