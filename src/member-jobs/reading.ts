import { on, once } from 'node:events'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { Worker } from 'node:worker_threads'
import { problem } from '../errors.ts'
import type { Column } from '../members/schema.ts'
import type { Currency } from '../money.ts'
import type { Day } from '../time.ts'

/** What is wrong with a row of a file; the header is row 1. */
export type Fault = { row: number; message: string }

/** What the thread that reads a file is given. */
export type Reading = {
  file: { path: string; kind: 'csv' | 'xlsx' }
  partnerId: string
  jobId: string
  country: string
  today: Day
  tiers: [name: string, currency: Currency][]
  now: Date
}

/** What it found. */
export type Read = {
  /** Of the file, in its order. */
  columns: Column[]
  /** Rows below the header, the faulty ones included. */
  rowCount: number
  /** At most as many as an answer holds. */
  faults: Fault[]
  /** How many rows more are at fault. */
  faultsMore: number
  /** Of which of them two rows may say the same, a fault that only the database can name. */
  perhapsRepeated: Column[]
  /** The last row that was looked at, before too many faults ended the reading. */
  readTo: number
}

/** What comes from the thread: rows as COPY takes them, and at last what was found. */
export type Message = { rows: Uint8Array } | { end: Read }

// A reader holds its heap and a connection. Who comes when all are taken is told to come back.
const readersMax = 2
// Excel's sheets are read as a whole.
const heapMbMax = { csv: 128, xlsx: 512 }
// A million rows take ten seconds; a file that stands still for this long never ends.
const silenceMsMax = 20_000
// Starting a thread takes a third of a second, longer than most files: one that is done waits for the next for so long.
const idleMsMax = 10_000

let readers = 0
const idle: { worker: Worker; timer: NodeJS.Timeout }[] = []

/**
 * Reads a file in a thread of its own, which cannot take more memory than it is given, and copies its rows where
 * `openCopy` leads to. The rows of a file with faults are copied as far as they have none themselves.
 * @param reading with the `signal` of a caller who has hung up
 * @throws Problem `ServiceUnavailable` when too many files are being read already
 */
export async function readInto(
  openCopy: () => Writable,
  { signal, ...reading }: Reading & { signal: AbortSignal },
): Promise<Read> {
  if (readers >= readersMax) {
    throw problem(
      'ServiceUnavailable',
      'Several files are being read already; try again in a moment',
      {},
      { 'retry-after': '5' },
    )
  }
  const { kind } = reading.file
  const copy = openCopy()
  const worker = takeThread(kind)
  readers += 1
  const copied = finished(copy)
  // Told of below; a stream that fails while nobody waits would end the process.
  copied.catch(() => undefined)
  let isWell = false
  try {
    worker.postMessage(reading)
    const read = await receive(worker, copy, signal)
    copy.end()
    await copied
    isWell = read !== tooMuch
    return read
  } catch (error) {
    copy.destroy()
    // What broke the copying says more than that nothing can be written to it any more.
    throw copy.errored ?? error
  } finally {
    readers -= 1
    if (isWell && kind === 'csv') keep(worker)
    else await worker.terminate()
  }
}

function takeThread(kind: 'csv' | 'xlsx'): Worker {
  const kept = kind === 'csv' ? idle.pop() : undefined
  if (kept !== undefined) {
    clearTimeout(kept.timer)
    return kept.worker
  }
  const worker = new Worker(new URL('./reader.ts', import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: heapMbMax[kind], maxYoungGenerationSizeMb: 16 },
  })
  // Whoever waits for it hears of it; one that is idle is not missed.
  worker.on('error', () => undefined)
  worker.once('exit', () => forget(worker))
  return worker
}

function keep(worker: Worker): void {
  // Nobody waits for it, also not the end of the program.
  worker.unref()
  const timer = setTimeout(() => void worker.terminate(), idleMsMax).unref()
  idle.push({ worker, timer })
}

function forget(worker: Worker): void {
  const index = idle.findIndex(each => each.worker === worker)
  if (index !== -1) idle.splice(index, 1)
}

async function receive(worker: Worker, copy: Writable, signal: AbortSignal): Promise<Read> {
  const silence = new AbortController()
  // An idle thread does not keep the program up; one that reads does.
  worker.ref()
  const listen = () => setTimeout(() => silence.abort(), silenceMsMax)
  let timer = listen()
  try {
    for await (const [message] of on(worker, 'message', {
      signal: AbortSignal.any([silence.signal, signal]),
      close: ['exit'],
    })) {
      timer.refresh()
      const { rows, end } = message as Partial<{ rows: Uint8Array; end: Read }>
      if (end !== undefined) return end
      if (!copy.write(rows)) {
        // A database that takes its time is not the file's fault.
        clearTimeout(timer)
        await once(copy, 'drain')
        timer = listen()
      }
      worker.postMessage('more')
    }
  } catch (error) {
    if (signal.aborted) throw problem('BadRequest', 'The caller has hung up')
    if (!isTooMuch(error)) throw error
    return tooMuch
  } finally {
    clearTimeout(timer)
  }
  throw new Error('The thread that reads a file has ended without a word')
}

const tooMuch: Read = {
  ...{ columns: [], rowCount: 0, faultsMore: 0, perhapsRepeated: [], readTo: 1 },
  faults: [
    { row: 1, message: 'the file is too large or too intricate to be read; save it as CSV, or send less at once' },
  ],
}

function isTooMuch(error: unknown): boolean {
  const { code, name } = error as NodeJS.ErrnoException
  return code === 'ERR_WORKER_OUT_OF_MEMORY' || name === 'AbortError'
}
