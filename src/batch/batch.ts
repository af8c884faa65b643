import type { SpanContext } from '@opentelemetry/api'
import { isLockTimeout, isUniqueViolation, outageOutcome, Unavailable } from '../database/errors.ts'
import { Deadline } from '../kernel/deadline.ts'
import { Problem, problem } from '../kernel/errors.ts'
import type { Lanes } from '../kernel/lanes.ts'
import type { Tracing } from '../tracing/tracing.ts'

/** The outcome of a command whose rows are locked by another transaction. It is retried in its partner's own lane. */
export const busy = Symbol('busy')

/** The outcome of one command of a batch. A refusal is a value, so it does not roll back its neighbours. */
export type CommandOutcome<Result> = Result | Problem | typeof busy

/**
 * Decides the commands of a batch, in order, and writes them together.
 * @param waits whether to wait for locks; if false, the outcome of a command that would have to wait is `busy`
 * @returns one outcome per command, in order
 * @throws if the batch was rolled back
 */
export type RunBatch<Command, Result> = (
  commands: Command[],
  context: { waits: boolean },
) => Promise<CommandOutcome<Result>[]>

const limits = {
  // Beyond this, longer statements cost more than the saved round trips.
  batchMax: 128,
  // Per lane: while PostgreSQL works on one batch, the next one is decided.
  inFlightMax: 2,
  // Over all lanes. Every batch holds a connection; see batchLimits in database/connect.ts.
  inFlightOfAllMax: 8,
  // A fifth of a second of work on two cores. Beyond this, a command is refused immediately, while its client can still retry.
  waitingMax: 1_024,
  // Commands of one partner that wait for locks, so that one partner cannot fill the queue.
  waitingOfOneMax: 128,
  // Commands that wait for a lock at the same time, each with a connection: at the end of a month many pay cycles close.
  lockWaitsMax: 5,
  // Twice the lock timeout of an ordinary operation: as long in the queue as for the lock.
  waitMsMax: 4_000,
  // A batch that takes longer is stuck, and its connection is destroyed. Shorter than the deadline of a request, so that its
  // commands get a definite outcome.
  runMsMax: 4_000,
}

type Waiting<Command, Result> = {
  partnerId: string
  command: Command
  since: number
  isSecondTry: boolean
  /** Sent to the database, which may execute the command even if its reply is lost. */
  isRunning: boolean
  /** The deadline has passed and the caller got an error, so the command must not run. */
  isGivenUp: boolean
  /** The span of the request, if traces are on. */
  span: SpanContext | undefined
  resolve(result: Result): void
  reject(reason: unknown): void
}

type Lane<Command, Result> = { waiting: Waiting<Command, Result>[]; inFlight: number }

/**
 * Coalesces concurrent commands into batches: the commands that are waiting when a batch returns form the next batch. There is
 * no timer, and a single command is a batch of one on the same code path.
 *
 * A lane has two batches in flight and never waits for a lock. A command that would have to wait moves to its partner's queue,
 * where it delays no other partner. In that queue, commands that need not wait still run together, and the oldest of the others
 * waits for its lock on its own.
 *
 * A failing batch is bisected until the failing command is isolated, so no other command of the batch fails.
 */
export class Batches<Command, Result> {
  readonly #run: RunBatch<Command, Result>
  readonly #lanesAre: Lanes
  readonly #onSent: (commandCount: number) => void
  readonly #tracing: Tracing | undefined
  readonly #name: string
  readonly #lanes = new Map<string, Lane<Command, Result>>()
  readonly #held = new Map<string, Waiting<Command, Result>[]>()
  readonly #batches = new Semaphore(limits.inFlightOfAllMax)
  readonly #lockWaits = new Semaphore(limits.lockWaitsMax)
  #count = 0

  /** @param options.onSent is told the size of each batch
   * @param options.tracing makes a span of each batch, with links to the spans of its commands */
  constructor(
    run: RunBatch<Command, Result>,
    {
      name = 'commands',
      lanes = 'shared',
      onSent = () => undefined,
      tracing,
    }: { name?: string; lanes?: Lanes; onSent?: (commandCount: number) => void; tracing?: Tracing | undefined } = {},
  ) {
    this.#name = name
    this.#tracing = tracing
    this.#run = run
    this.#lanesAre = lanes
    this.#onSent = onSent
  }

  /**
   * @returns the command's result, once it is durable
   * @throws the command's refusal; Problem `ServiceUnavailable` if too many commands are waiting; Unavailable if the deadline
   * of the request passes first; otherwise the error of the database
   */
  async submit(partnerId: string, command: Command): Promise<Result> {
    if (this.#count >= limits.waitingMax) throw tooBusy()
    this.#count += 1
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<Result>((resolve, reject) => {
        const entry: Waiting<Command, Result> = {
          partnerId,
          command,
          since: performance.now(),
          isSecondTry: false,
          isRunning: false,
          isGivenUp: false,
          span: this.#tracing?.current(),
          resolve,
          reject,
        }
        const deadline = Deadline.current
        timer = deadline && setTimeout(() => giveUp(entry), deadline.leftMs)
        this.#enqueue(entry)
      })
    } finally {
      clearTimeout(timer)
      this.#count -= 1
    }
  }

  #enqueue(entry: Waiting<Command, Result>): void {
    const name = this.#lanesAre === 'shared' ? 'all partners' : entry.partnerId
    const lane = this.#lanes.get(name) ?? { waiting: [], inFlight: 0 }
    this.#lanes.set(name, lane)
    lane.waiting.push(entry)
    if (lane.inFlight === limits.inFlightMax) return
    lane.inFlight += 1
    // In the next turn of the event loop, so that the other commands of this turn are in the same batch.
    setImmediate(() => void this.#drain(name, lane))
  }

  async #drain(name: string, lane: Lane<Command, Result>): Promise<void> {
    while (lane.waiting.length > 0) {
      const held = await this.#batches.run(() => this.#attempt(take(lane.waiting), { waits: false }))
      for (const entry of held) this.#hold(entry)
    }
    lane.inFlight -= 1
    if (lane.inFlight === 0) this.#lanes.delete(name)
  }

  #hold(entry: Waiting<Command, Result>): void {
    const { partnerId } = entry
    const lane = this.#held.get(partnerId)
    if (lane === undefined) {
      const newLane = [entry]
      this.#held.set(partnerId, newLane)
      void this.#drainHeld(partnerId, newLane)
    } else if (lane.length < limits.waitingOfOneMax) {
      lane.push(entry)
    } else {
      entry.reject(tooBusy())
    }
  }

  async #drainHeld(partnerId: string, lane: Waiting<Command, Result>[]): Promise<void> {
    while (lane.length > 0) {
      const [oldest, ...others] = await this.#attempt(take(lane), { waits: false })
      lane.unshift(...others)
      if (oldest !== undefined)
        await this.#lockWaits.run(() => this.#attempt(oldest.isGivenUp ? [] : [oldest], { waits: true }))
    }
    this.#held.delete(partnerId)
  }

  /**
   * Runs a batch and settles its commands, except commands that would have to wait for a lock. Never throws.
   * @returns the commands that would have to wait, in order
   */
  async #attempt(batch: Waiting<Command, Result>[], context: { waits: boolean }): Promise<Waiting<Command, Result>[]> {
    if (batch.length === 0) return []
    for (const entry of batch) entry.isRunning = true
    this.#onSent(batch.length)
    try {
      const commands = batch.map(({ command }) => command)
      // The batch has its own deadline, not the deadline of the request that happened to come first.
      const deadline = new Deadline({ ms: limits.runMsMax, isSheddable: false })
      const outcomes = await deadline.run(() =>
        this.#tracing === undefined ? this.#run(commands, context) : this.#runTraced(this.#tracing, batch, context),
      )
      return batch.filter((entry, index) => !conclude(entry, outcomes[index]))
    } catch (error) {
      return await this.#attemptAfter(error, batch, context)
    }
  }

  async #runTraced(
    tracing: Tracing,
    batch: Waiting<Command, Result>[],
    context: { waits: boolean },
  ): Promise<CommandOutcome<Result>[]> {
    const links = batch.flatMap(({ span }) => (span === undefined ? [] : [{ context: span }]))
    const attributes = { 'midmonth.batch.commands': batch.length, 'midmonth.batch.waits': String(context.waits) }
    const run = () =>
      this.#run(
        batch.map(({ command }) => command),
        context,
      )
    return await tracing.inSpan(`batch ${this.#name}`, { attributes, links }, run)
  }

  async #attemptAfter(
    error: unknown,
    batch: Waiting<Command, Result>[],
    context: { waits: boolean },
  ): Promise<Waiting<Command, Result>[]> {
    const [first] = batch
    if (concernsAll(error)) {
      for (const entry of batch) entry.reject(error)
      return []
    }
    if (batch.length > 1) {
      const half = Math.ceil(batch.length / 2)
      const held = await this.#attempt(batch.slice(0, half), context)
      return [...held, ...(await this.#attempt(batch.slice(half), context))]
    }
    if (isLockTimeout(error) && !context.waits) {
      for (const entry of batch) entry.isRunning = false
      return batch
    }
    if (first !== undefined && isUniqueViolation(error) && !first.isSecondTry) {
      // Another process was faster with the same idempotency key or intent. The result of that process is visible now.
      first.isSecondTry = true
      return await this.#attempt(batch, context)
    }
    first?.reject(error)
    return []
  }
}

// Refuses the commands that have waited too long.
function take<Command, Result>(lane: Waiting<Command, Result>[]): Waiting<Command, Result>[] {
  const oldest = performance.now() - limits.waitMsMax
  const taken = lane.splice(0, limits.batchMax)
  for (const entry of taken) if (entry.since < oldest) entry.reject(tooBusy())
  return taken.filter(entry => entry.since >= oldest && !entry.isGivenUp)
}

function giveUp<Command, Result>(entry: Waiting<Command, Result>): void {
  entry.isGivenUp = true
  entry.reject(new Unavailable('the batch did not end in time', entry.isRunning ? 'unknown' : 'nothing-done'))
}

/** @returns false if the command is not settled yet, because it must wait for a lock */
function conclude<Command, Result>(
  entry: Waiting<Command, Result>,
  outcome: CommandOutcome<Result> | undefined,
): boolean {
  if (outcome === busy) {
    entry.isRunning = false
    return false
  }
  if (outcome instanceof Problem) entry.reject(outcome)
  else if (outcome === undefined) entry.reject(new Error('A batch returned no outcome for a command'))
  else entry.resolve(outcome)
  return true
}

// The database is down, full or overloaded, so bisecting would only add load. Deadlocks and lock timeouts concern single rows.
function concernsAll(error: unknown): boolean {
  return outageOutcome(error) !== undefined && !isContention(error)
}

function isContention(error: unknown): boolean {
  return isLockTimeout(error) || /^40/.test((error as { code?: string }).code ?? '')
}

function tooBusy(): Problem {
  return problem(
    'ServiceUnavailable',
    'The service is busy, so nothing was done; try again',
    {},
    { 'retry-after': '1' },
  )
}

/** Limits how many pieces of work run at once; the others wait in order. */
class Semaphore {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(max: number) {
    this.#free = max
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>(resolve => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      // The place goes straight to the next in line, so that later work cannot take it.
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}
