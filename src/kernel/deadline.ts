import { AsyncLocalStorage } from 'node:async_hooks'

const storage = new AsyncLocalStorage<Deadline>()

/**
 * How long one request, or one batch, may take. Code that waits on its behalf (for a connection, for the database) asks for
 * the current deadline and gives up when that passes. Work without a deadline, such as the worker's tasks, waits as long as
 * the database allows.
 */
export class Deadline {
  /** Whether the work is refused immediately if too many requests are already waiting for a connection. */
  readonly isSheddable: boolean
  #dueMs: number
  #pausedAtMs: number | undefined

  /** @param ms from now */
  constructor({ ms, isSheddable = true }: { ms: number; isSheddable?: boolean }) {
    this.isSheddable = isSheddable
    this.#dueMs = performance.now() + ms
  }

  static get current(): Deadline | undefined {
    return storage.getStore()
  }

  /** Never negative. */
  get leftMs(): number {
    return Math.max(0, this.#dueMs - performance.now())
  }

  /** Stops the clock until `run` is called, while the service waits for the caller. */
  pause(): void {
    this.#pausedAtMs = performance.now()
  }

  /** Runs work that may take longer than the request that starts it. */
  static without<T>(work: () => T): T {
    return storage.exit(work)
  }

  /** Makes this the current deadline of `work`, and of everything that `work` starts. */
  run<T>(work: () => T): T {
    if (this.#pausedAtMs !== undefined) this.#dueMs += performance.now() - this.#pausedAtMs
    this.#pausedAtMs = undefined
    return storage.run(this, work)
  }
}
