import { setTimeout as pause } from 'node:timers/promises'
import { Unavailable } from '../database/errors.ts'

export const leaseLimits = {
  // A new key is known everywhere soon after this.
  readEveryMs: 5_000,
  retryMs: 1_000,
  refreshMsMax: 3_000,
  // A process that has not read the keys for this long seals nothing: a rotation that waits longer knows that no process seals with the
  // key that it has retired.
  staleMs: 30_000,
}

/**
 * How recently this process has read the keys of the installation. Sealing with a key that was retired in the meantime could lose the
 * value, so a process that cannot read the keys, or was stopped for a while, refuses until it has read them.
 */
export class KeyLease {
  readonly #clockMs: () => number
  readonly #readEveryMs: number
  #readAtMs: number
  #reads = 0
  #whenRead = Promise.withResolvers<void>()
  // Unknown keys, and how often the keys had been read when a value with the key was met.
  readonly #awaited = new Map<number, number>()
  #interrupt: () => void = () => undefined

  /** @param clockMs the wall clock, which also runs while the process is stopped */
  constructor({ clockMs = Date.now, readEveryMs = leaseLimits.readEveryMs } = {}) {
    this.#clockMs = clockMs
    this.#readEveryMs = readEveryMs
    this.#readAtMs = clockMs()
  }

  get isFresh(): boolean {
    return this.#clockMs() - this.#readAtMs < leaseLimits.staleMs
  }

  /** @throws Unavailable if the keys must be read before the next value is sealed */
  requireFresh(): void {
    if (this.isFresh) return
    this.#interrupt()
    throw new Unavailable('the installation’s keys have not been read for too long', 'nothing-done')
  }

  /** Returns if the key is still unknown after the keys were read again. @throws Unavailable until then */
  awaitKey(number: number): void {
    const since = this.#awaited.get(number) ?? this.#reads
    this.#awaited.set(number, since)
    // A reading that was under way when the value was met may be too early.
    if (this.#reads >= since + 2) return
    this.#interrupt()
    throw new Unavailable(
      `a value with the installation’s key ${number} cannot be opened until the keys were read again`,
      'nothing-done',
    )
  }

  /** Waits until the keys were read again. @throws Unavailable if that takes too long */
  async refresh(): Promise<void> {
    const since = this.#reads
    // A reading that is under way may be too early.
    while (this.#reads < since + 2) {
      this.#interrupt()
      const late = new AbortController()
      const isLate = pause(leaseLimits.refreshMsMax, true, { ref: false, signal: late.signal }).catch(() => false)
      if ((await Promise.race([this.#whenRead.promise, isLate])) === true)
        throw new Unavailable('the installation’s keys cannot be read', 'nothing-done')
      late.abort()
    }
  }

  /** Reads the keys every few seconds, or earlier if one is missing, until the signal aborts. */
  async keep(
    read: () => Promise<void>,
    { signal, onStale }: { signal: AbortSignal; onStale: (error: unknown) => void },
  ) {
    let waitMs = this.#readEveryMs
    let isReported = false
    for (;;) {
      await this.#wait(waitMs, signal)
      if (signal.aborted) return
      const startedAtMs = this.#clockMs()
      try {
        await read()
        this.#readAtMs = startedAtMs
        this.#reads += 1
        this.#whenRead.resolve()
        this.#whenRead = Promise.withResolvers()
        isReported = false
        // Twice in a row for a missing key; see `awaitKey`.
        waitMs = [...this.#awaited.values()].some(since => this.#reads < since + 2) ? 0 : this.#readEveryMs
      } catch (error) {
        waitMs = leaseLimits.retryMs
        if (!this.isFresh && !isReported && !signal.aborted) onStale(error)
        isReported = !this.isFresh
      }
    }
  }

  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    const interrupted = new Promise<void>(resolve => {
      this.#interrupt = resolve
    })
    const ended = new AbortController()
    const either = AbortSignal.any([signal, ended.signal])
    await Promise.race([pause(ms, undefined, { ref: false, signal: either }).catch(() => undefined), interrupted])
    ended.abort()
  }
}
