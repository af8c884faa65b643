import { ReaderExhausted, ReaderThreads } from '../reader-threads.ts'
import type { FileRead } from './file.ts'
import type { LineFault, Taken } from './rules.ts'

// 250,000 lines take three seconds. A read without progress for twenty seconds has hung.
const threads = new ReaderThreads<{ fd: number }, Taken[], FileRead>(new URL('./reader.ts', import.meta.url), {
  threadsMax: 2,
  waitMsMax: 10_000,
  idleMsMax: 10_000,
  silenceMsMax: 20_000,
})

// Only a batch of lines is in memory at a time.
const heapMbMax = 128

/**
 * Reads a settlement file in a worker thread.
 * @param fd the descriptor of the open file
 * @param signal aborts the read when the client disconnects
 * @returns the readable lines, and the errors of the others
 */
export async function readFile(
  fd: number,
  { signal }: { signal: AbortSignal },
): Promise<{ taken: Taken[]; faults: LineFault[]; faultsMore: number }> {
  const taken: Taken[] = []
  try {
    const found = await threads.read(
      { fd },
      {
        heapMbMax,
        isKept: true,
        signal,
        onBatch(lines) {
          for (const line of lines) taken.push(line)
        },
      },
    )
    return { taken, ...found }
  } catch (error) {
    if (!(error instanceof ReaderExhausted)) throw error
    return {
      taken: [],
      faults: [{ at: 1, message: 'reading the file takes too much memory; save it again as a plain CSV file' }],
      faultsMore: 0,
    }
  }
}
