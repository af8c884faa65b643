import { isLockTimeout, isUniqueViolation, outageOutcome, Unavailable } from './database/errors.ts'
import { Deadline } from './deadline.ts'
import { Problem, problem } from './errors.ts'

/** A command's answer that somebody else holds what it needs: it is run again where waiting holds up nobody else. */
export const busy = Symbol('busy')

/** What became of one command of a batch. A refusal is a value: it undoes nothing of its neighbours. */
export type Outcome<Result> = Result | Problem | typeof busy

/**
 * Decides the commands of a batch, in their order, and writes them together.
 * @param waits whether to wait for what others hold; otherwise the outcome of such a command is `busy`
 * @returns an outcome for each command, in their order
 * @throws when none of them has happened
 */
export type RunBatch<Command, Result> = (commands: Command[], context: { waits: boolean }) => Promise<Outcome<Result>[]>

const limits = {
  // More make the statements longer than the round trips that they save.
  batchMax: 128,
  // While PostgreSQL works on one batch, the next is decided.
  inFlightMax: 2,
  // A fifth of a second of work on two cores: who comes later is told at once, while an answer is still of use to them.
  waitingMax: 1_024,
  // Of them, for what others hold, in one partner's lane: nobody fills the queue of all.
  waitingOfOneMax: 128,
  // Waits for a lock at once, each with a connection: at the end of a month every partner's cycle closes.
  patientMax: 5,
  // As long as an ordinary operation waits for a lock, and its turn before that.
  waitMsMax: 4_000,
  // A batch that takes longer hangs: its connection is given up, so that the next one gets another. The first commands of it
  // are told before their own deadline passes, and so whether anything was done.
  runMsMax: 4_000,
}

type Entry<Command, Result> = {
  partnerId: string
  command: Command
  since: number
  isSecondTry: boolean
  /** Handed to the database, which may carry it out even if the answer does not come. */
  isRunning: boolean
  /** Answered because its deadline has passed. It is not run any more. */
  isGivenUp: boolean
  resolve(result: Result): void
  reject(reason: unknown): void
}

/**
 * Coalesces commands that come at the same time into one batch: what is waiting when a batch in flight has returned is the
 * next one. There is no timer; a command that comes alone is a batch of one, on the same way.
 *
 * All partners share one lane, with two batches in flight, which never waits for what somebody else holds, be it the other
 * batch. Commands that must wait go on in a lane of their partner, so that nobody waits for another partner's closing or for
 * another process. There, too, what is free goes together, and only the oldest command that is not waits for it, alone.
 *
 * A batch that fails is halved until the command that made it fail is alone: it never fails its neighbours.
 */
export class Batches<Command, Result> {
  readonly #run: RunBatch<Command, Result>
  readonly #shared: Entry<Command, Result>[] = []
  readonly #held = new Map<string, Entry<Command, Result>[]>()
  readonly #patience: (() => void)[] = []
  #inFlight = 0
  #patient = 0
  #count = 0

  constructor(run: RunBatch<Command, Result>) {
    this.#run = run
  }

  /**
   * @returns the command's result, once it is durable
   * @throws the command's refusal; Problem `ServiceUnavailable` when too many are waiting; Unavailable when the deadline of
   * the request passes first; what the database says otherwise
   */
  async submit(partnerId: string, command: Command): Promise<Result> {
    if (this.#count >= limits.waitingMax) throw tooBusy()
    this.#count += 1
    let timer: NodeJS.Timeout | undefined
    try {
      return await new Promise<Result>((resolve, reject) => {
        const entry: Entry<Command, Result> = {
          partnerId,
          command,
          since: performance.now(),
          isSecondTry: false,
          isRunning: false,
          isGivenUp: false,
          resolve,
          reject,
        }
        this.#shared.push(entry)
        const deadline = Deadline.current
        timer = deadline && setTimeout(() => giveUp(entry), deadline.leftMs)
        if (this.#inFlight === limits.inFlightMax) return
        this.#inFlight += 1
        // In the next turn of the loop, so that what has arrived in this one comes along.
        setImmediate(() => void this.#drain())
      })
    } finally {
      clearTimeout(timer)
      this.#count -= 1
    }
  }

  async #drain(): Promise<void> {
    while (this.#shared.length > 0) {
      const held = await this.#attempt(take(this.#shared), { waits: false })
      for (const entry of held) this.#hold(entry)
    }
    this.#inFlight -= 1
  }

  #hold(entry: Entry<Command, Result>): void {
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

  async #drainHeld(partnerId: string, lane: Entry<Command, Result>[]): Promise<void> {
    while (lane.length > 0) {
      const [oldest, ...others] = await this.#attempt(take(lane), { waits: false })
      lane.unshift(...others)
      if (oldest !== undefined)
        await this.#patiently(() => this.#attempt(oldest.isGivenUp ? [] : [oldest], { waits: true }))
    }
    this.#held.delete(partnerId)
  }

  async #patiently(work: () => Promise<unknown>): Promise<void> {
    if (this.#patient === limits.patientMax) await new Promise<void>(resolve => this.#patience.push(resolve))
    else this.#patient += 1
    await work()
    const next = this.#patience.shift()
    // Whoever waits takes the place over.
    if (next === undefined) this.#patient -= 1
    else next()
  }

  /**
   * Runs a batch, and answers all of its commands but those that would have had to wait. Never throws.
   * @returns those, in their order
   */
  async #attempt(batch: Entry<Command, Result>[], context: { waits: boolean }): Promise<Entry<Command, Result>[]> {
    if (batch.length === 0) return []
    for (const entry of batch) entry.isRunning = true
    try {
      const commands = batch.map(({ command }) => command)
      // Of its own: the request whose command comes first has no more to say than the others.
      const deadline = new Deadline({ ms: limits.runMsMax, isSheddable: false })
      const outcomes = await deadline.run(() => this.#run(commands, context))
      return batch.filter((entry, index) => !conclude(entry, outcomes[index]))
    } catch (error) {
      return await this.#attemptAfter(error, batch, context)
    }
  }

  async #attemptAfter(
    error: unknown,
    batch: Entry<Command, Result>[],
    context: { waits: boolean },
  ): Promise<Entry<Command, Result>[]> {
    const [first] = batch
    if (isEverybodys(error)) {
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
      // Another process was first, with the same idempotency key or the same intent: now its work can be seen.
      first.isSecondTry = true
      return await this.#attempt(batch, context)
    }
    first?.reject(error)
    return []
  }
}

// Who has waited too long is told so instead.
function take<Command, Result>(lane: Entry<Command, Result>[]): Entry<Command, Result>[] {
  const oldest = performance.now() - limits.waitMsMax
  const taken = lane.splice(0, limits.batchMax)
  for (const entry of taken) if (entry.since < oldest) entry.reject(tooBusy())
  return taken.filter(entry => entry.since >= oldest && !entry.isGivenUp)
}

function giveUp<Command, Result>(entry: Entry<Command, Result>): void {
  entry.isGivenUp = true
  entry.reject(new Unavailable('the batch did not end in time', entry.isRunning ? 'unknown' : 'nothing-done'))
}

/** @returns false when the command has no answer yet, because it must wait */
function conclude<Command, Result>(entry: Entry<Command, Result>, outcome: Outcome<Result> | undefined): boolean {
  if (outcome === busy) {
    entry.isRunning = false
    return false
  }
  if (outcome instanceof Problem) entry.reject(outcome)
  else if (outcome === undefined) entry.reject(new Error('A batch has forgotten a command'))
  else entry.resolve(outcome)
  return true
}

// The database is away, full or overloaded: halving would only ask it more often. Deadlocks and lock timeouts are about
// single rows.
function isEverybodys(error: unknown): boolean {
  return outageOutcome(error) !== undefined && !isContention(error)
}

function isContention(error: unknown): boolean {
  return isLockTimeout(error) || /^40/.test((error as { code?: string }).code ?? '')
}

function tooBusy(): Problem {
  return problem('ServiceUnavailable', 'The service is busy; nothing was done, try again', {}, { 'retry-after': '1' })
}
