import { AsyncLocalStorage } from 'node:async_hooks'

const storage = new AsyncLocalStorage<Deadline>()

/**
 * How long one request, or one batch, may take. Whatever waits on its behalf (for a connection, for an answer of the
 * database) asks for the current deadline and gives up when it passes. Work without one, such as the worker's tasks, waits
 * as long as the database lets it.
 */
export class Deadline {
  /** Whether the work is refused at once when too many requests wait for a connection already. */
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

  /** Stops the clock while it is the caller's turn, until `run` is called. */
  pause(): void {
    this.#pausedAtMs = performance.now()
  }

  /** Runs work that may take longer than the request that starts it. */
  static without<T>(work: () => T): T {
    return storage.exit(work)
  }

  /** Makes this the current deadline of `work`, and of all that it starts. */
  run<T>(work: () => T): T {
    if (this.#pausedAtMs !== undefined) this.#dueMs += performance.now() - this.#pausedAtMs
    this.#pausedAtMs = undefined
    return storage.run(this, work)
  }
}
