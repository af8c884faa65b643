import { on } from 'node:events'
import { parentPort, type Transferable, Worker } from 'node:worker_threads'
import { problem } from './kernel/errors.ts'

type Limits = {
  /** Tasks that are read concurrently; each has its own heap. */
  threadsMax: number
  /** How long a task waits for a thread before it is refused. */
  waitMsMax: number
  /** How long an idle thread is kept: starting one takes a third of a second, longer than most tasks. */
  idleMsMax: number
  /** A thread that has sent nothing for this long is considered stuck. */
  silenceMsMax: number
}

type Message<Batch, Found> = { batch: Batch } | { found: Found }

/** @property isKept whether the thread may be reused for the next task */
type Reading<Batch> = {
  heapMbMax: number
  isKept: boolean
  transfer?: Transferable[]
  signal: AbortSignal
  onBatch: (batch: Batch) => Promise<void> | void
}

/** The input needs more memory or time than a thread is given. */
export class ReaderExhausted extends Error {}

/**
 * Threads that read what callers send. Input that is too large or hostile exhausts only its thread; the main thread keeps
 * running and keeps its memory.
 */
export class ReaderThreads<Task, Batch, Found> {
  private readonly module: URL
  private readonly limits: Limits
  private running = 0
  private readonly waiting: (() => void)[] = []
  private readonly idle: { worker: Worker; heapMbMax: number; timer: NodeJS.Timeout }[] = []

  /** @param module calls `serveReads` */
  constructor(module: URL, limits: Limits) {
    this.module = module
    this.limits = limits
  }

  /**
   * Reads one input in a thread. The thread is at most a few batches ahead of `onBatch`.
   * @throws ReaderExhausted; Problem `ServiceUnavailable` when all threads are taken, `BadRequest` when the caller has disconnected
   */
  async read(task: Task, { heapMbMax, isKept, transfer = [], signal, onBatch }: Reading<Batch>): Promise<Found> {
    await this.acquire(signal)
    let isReusable = false
    let worker: Worker | undefined
    try {
      worker = this.takeIdle(heapMbMax) ?? this.start(heapMbMax)
      worker.postMessage(task, transfer)
      const found = await this.receive(worker, { signal, onBatch })
      isReusable = isKept
      return found
    } finally {
      if (worker !== undefined) {
        if (isReusable) this.keep(worker, heapMbMax)
        // Wait for the thread to stop reading, so that the caller may close the file.
        else await worker.terminate()
      }
      this.release()
    }
  }

  private async acquire(signal: AbortSignal): Promise<void> {
    if (this.running < this.limits.threadsMax) {
      this.running += 1
      return
    }
    if (this.limits.waitMsMax === 0) throw busy()
    const turn = Promise.withResolvers<void>()
    const take = () => turn.resolve()
    const give = (refusal: Error) => {
      const place = this.waiting.indexOf(take)
      if (place === -1) return
      this.waiting.splice(place, 1)
      turn.reject(refusal)
    }
    this.waiting.push(take)
    const timer = setTimeout(() => give(busy()), this.limits.waitMsMax)
    const abort = () => give(disconnected())
    signal.addEventListener('abort', abort, { once: true })
    try {
      await turn.promise
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
  }

  // A thread that becomes free goes to the task that has waited longest.
  private release(): void {
    const next = this.waiting.shift()
    if (next === undefined) this.running -= 1
    else next()
  }

  private start(heapMbMax: number): Worker {
    const worker = new Worker(this.module, {
      resourceLimits: { maxOldGenerationSizeMb: heapMbMax, maxYoungGenerationSizeMb: 16 },
    })
    // `receive` handles errors; an idle thread that fails is simply dropped.
    worker.on('error', () => undefined)
    worker.once('exit', () => this.forget(worker))
    return worker
  }

  private takeIdle(heapMbMax: number): Worker | undefined {
    const index = this.idle.findLastIndex(each => each.heapMbMax === heapMbMax)
    const [taken] = index === -1 ? [] : this.idle.splice(index, 1)
    clearTimeout(taken?.timer)
    return taken?.worker
  }

  private keep(worker: Worker, heapMbMax: number): void {
    // An idle thread must not keep the process alive.
    worker.unref()
    const timer = setTimeout(() => void worker.terminate(), this.limits.idleMsMax).unref()
    this.idle.push({ worker, heapMbMax, timer })
  }

  private forget(worker: Worker): void {
    const index = this.idle.findIndex(each => each.worker === worker)
    if (index !== -1) this.idle.splice(index, 1)
  }

  private async receive(
    worker: Worker,
    { signal, onBatch }: { signal: AbortSignal; onBatch: (batch: Batch) => Promise<void> | void },
  ): Promise<Found> {
    const silence = new AbortController()
    worker.ref()
    const listen = () => setTimeout(() => silence.abort(), this.limits.silenceMsMax)
    let timer = listen()
    try {
      const ended = AbortSignal.any([silence.signal, signal])
      for await (const [message] of on(worker, 'message', { signal: ended, close: ['exit'] })) {
        const { batch, found } = message as Partial<{ batch: Batch; found: Found }>
        if (found !== undefined) return found
        // Time spent on the batch here does not count as silence of the thread.
        clearTimeout(timer)
        if (batch !== undefined) await onBatch(batch)
        timer = listen()
        worker.postMessage('more')
      }
    } catch (error) {
      if (signal.aborted) throw disconnected()
      const isExhausted = silence.signal.aborted || (error as { code?: string }).code === 'ERR_WORKER_OUT_OF_MEMORY'
      throw isExhausted ? new ReaderExhausted('The input exhausted its reader', { cause: error }) : error
    } finally {
      clearTimeout(timer)
    }
    throw new Error('A reader thread ended before it had read its input')
  }
}

function busy() {
  const headers = { 'retry-after': '5' }
  return problem('ServiceUnavailable', 'Too many large bodies are being read; try again in a moment', {}, headers)
}

function disconnected() {
  return problem('BadRequest', 'The caller has disconnected')
}

/**
 * Serves reads in a worker thread. Call it once, at the top level of the thread's module.
 * @param read reads one input and passes its rows to `send`; an error ends the thread and fails the request
 * @param batchesAhead batches that may be in flight to the main thread
 */
export function serveReads<Task extends object, Batch, Found>(
  read: (task: Task, send: (batch: Batch, transfer?: Transferable[]) => Promise<void>) => Promise<Found>,
  { batchesAhead }: { batchesAhead: number },
): void {
  const port = parentPort
  if (port === null) throw new Error('This module must run in a worker thread')
  const post = (message: Message<Batch, Found>, transfer: Transferable[] = []) => port.postMessage(message, transfer)
  let credits = batchesAhead
  let wake: (() => void) | undefined
  port.on('message', (message: Task | 'more') => {
    if (message !== 'more') {
      credits = batchesAhead
      void read(message, send).then(found => post({ found }))
      return
    }
    credits += 1
    wake?.()
  })

  async function send(batch: Batch, transfer: Transferable[] = []): Promise<void> {
    while (credits === 0) {
      await new Promise<void>(resolve => {
        wake = resolve
      })
    }
    credits -= 1
    post({ batch }, transfer)
  }
}
