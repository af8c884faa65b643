import { ReaderExhausted, ReaderThreads } from '../reader-threads.ts'
import type { FileRead } from './file.ts'
import type { Fault, Taken } from './rules.ts'

// 250,000 lines take three seconds; a file that stands still for twenty never ends.
const threads = new ReaderThreads<{ fd: number }, Taken[], FileRead>(new URL('./reader.ts', import.meta.url), {
  threadsMax: 2,
  waitMsMax: 10_000,
  idleMsMax: 10_000,
  silenceMsMax: 20_000,
})

// Of a file only a batch of lines is held.
const heapMbMax = 128

/**
 * Reads a settlement file in a thread of its own.
 * @param fd of the open file
 * @param signal of a caller who has hung up
 * @returns every line that can be read, and what is wrong with the others
 */
export async function readFile(
  fd: number,
  { signal }: { signal: AbortSignal },
): Promise<{ taken: Taken[]; faults: Fault[]; faultsMore: number }> {
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
    return { taken: [], faults: [{ at: 1, message: 'the file is too intricate to be read' }], faultsMore: 0 }
  }
}
