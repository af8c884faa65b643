import { setTimeout as pause } from 'node:timers/promises'
import { Deadline } from '../kernel/deadline.ts'
import { advance, type MoveContext } from './moves.ts'

/** Moves clocks for waiting requests, beyond the end of the request if necessary. */
export class ClockDriver {
  readonly #context: MoveContext
  readonly #driving = new Set<Promise<unknown>>()
  #isStopping = false

  constructor(context: MoveContext) {
    this.#context = context
  }

  /** Moves the clock for at most `msMax`; a worker continues the rest. */
  async drive(move: { partnerId: string; moveId: string }, { msMax }: { msMax: number }): Promise<void> {
    const until = performance.now() + msMax
    const mayGoOn = () => !this.#isStopping && performance.now() < until
    const driving = Deadline.without(() => this.#driveUntil(move, { until, mayGoOn })).catch(error =>
      this.#context.log.warn({ err: error, ...move }, 'a clock was not moved to its target; a worker continues'),
    )
    this.#driving.add(driving)
    void driving.finally(() => this.#driving.delete(driving))
    await Promise.race([driving, pause(msMax, undefined, { ref: false })])
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await Promise.all(this.#driving)
  }

  // Another process may hold the lease: a worker, or the process that a request with the same key went to.
  async #driveUntil(
    move: { partnerId: string; moveId: string },
    { until, mayGoOn }: { until: number; mayGoOn: () => boolean },
  ): Promise<void> {
    while (!(await advance(this.#context, { ...move, mayGoOn }))) {
      if (!mayGoOn()) return
      await pause(Math.min(pollMs, Math.max(0, until - performance.now())))
    }
  }
}

const pollMs = 100
