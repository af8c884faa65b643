import { type Db, isLockTimeout, isUniqueViolation, unavailability } from './db.ts'
import { Problem, problem } from './errors.ts'

/** A command's answer that somebody else holds what it needs: it is run again where waiting holds up nobody else. */
export const busy = Symbol('busy')

/** What became of one command of a batch. A refusal is a value: it undoes nothing of its neighbours. */
export type Outcome<Result> = Result | Problem | typeof busy

/**
 * Decides and writes the commands of a batch, in their order, in one transaction.
 * @param waits whether to wait for what others hold; otherwise the outcome of such a command is `busy`
 * @returns an outcome for each command, in their order
 * @throws when none of them has happened
 */
export type RunBatch<Command, Result> = (
  commands: Command[],
  context: { db: Db; waits: boolean },
) => Promise<Outcome<Result>[]>

/** Where batches run: `batchDb` has the connections of the lane that all share, `db` those of the lanes that wait. */
export type Databases = { db: Db; batchDb: Db }

const limits = {
  // More make the statements longer than the round trips that they save.
  batchMax: 128,
  // While PostgreSQL works on one batch, the next is decided.
  inFlightMax: 2,
  // A fifth of a second of work on two cores: who comes later is told at once, while an answer is still of use to them.
  waitingMax: 1_024,
  // As long as an ordinary operation waits for a lock, and its turn before that.
  waitMsMax: 4_000,
}

type Entry<Command, Result> = {
  partnerId: string
  command: Command
  since: number
  isSecondTry: boolean
  resolve(result: Result): void
  reject(reason: unknown): void
}

type Lane<Command, Result> = { name: string; waits: boolean; waiting: Entry<Command, Result>[]; running: number }

/**
 * Coalesces commands that come at the same time into one batch: what is waiting when the batch in flight has returned is
 * the next one. There is no timer; a command that comes alone is a batch of one, on the same way.
 *
 * All partners share one lane, with one batch in flight, which never waits for what somebody else holds. Commands that must
 * wait go on in a lane of their partner, so that nobody waits for another partner's closing or for another process.
 * A batch that fails is halved until the command that made it fail is alone: it never fails its neighbours.
 */
export class Batches<Command, Result> {
  readonly #run: RunBatch<Command, Result>
  readonly #databases: Databases
  readonly #shared: Lane<Command, Result> = { name: '', waits: false, waiting: [], running: 0 }
  readonly #waitingLanes = new Map<string, Lane<Command, Result>>()
  #count = 0

  constructor(databases: Databases, run: RunBatch<Command, Result>) {
    this.#databases = databases
    this.#run = run
  }

  /**
   * @returns the command's result, once it is durable
   * @throws the command's refusal; Problem `ServiceUnavailable` when too many are waiting; what the database says otherwise
   */
  async submit(partnerId: string, command: Command): Promise<Result> {
    if (this.#count >= limits.waitingMax) throw tooBusy()
    this.#count += 1
    try {
      return await new Promise<Result>((resolve, reject) => {
        const entry = { partnerId, command, since: performance.now(), isSecondTry: false, resolve, reject }
        this.#enter(this.#shared, entry)
      })
    } finally {
      this.#count -= 1
    }
  }

  #enter(lane: Lane<Command, Result>, entry: Entry<Command, Result>): void {
    lane.waiting.push(entry)
    if (lane.running >= limits.inFlightMax) return
    lane.running += 1
    // In the next turn of the loop, so that what has arrived in this one comes along.
    setImmediate(() => void this.#drain(lane))
  }

  async #drain(lane: Lane<Command, Result>): Promise<void> {
    while (lane.waiting.length > 0) {
      await this.#settle(lane, lane.waiting.splice(0, limits.batchMax))
    }
    lane.running -= 1
    if (lane.running === 0) this.#waitingLanes.delete(lane.name)
  }

  async #settle(lane: Lane<Command, Result>, entries: Entry<Command, Result>[]): Promise<void> {
    const oldest = performance.now() - limits.waitMsMax
    const batch = entries.filter(entry => entry.since >= oldest)
    for (const entry of entries) if (entry.since < oldest) entry.reject(tooBusy())
    if (batch.length === 0) return
    try {
      const { db, batchDb } = this.#databases
      const outcomes = await this.#run(
        batch.map(({ command }) => command),
        { db: lane.waits ? db : batchDb, waits: lane.waits },
      )
      for (const [index, entry] of batch.entries()) this.#conclude(entry, outcomes[index])
    } catch (error) {
      await this.#settleAfter(error, lane, batch)
    }
  }

  async #settleAfter(error: unknown, lane: Lane<Command, Result>, batch: Entry<Command, Result>[]): Promise<void> {
    const [first] = batch
    if (isEverybodys(error)) {
      for (const entry of batch) entry.reject(error)
    } else if (batch.length > 1) {
      const half = Math.ceil(batch.length / 2)
      await this.#settle(lane, batch.slice(0, half))
      await this.#settle(lane, batch.slice(half))
    } else if (first !== undefined && isLockTimeout(error) && !lane.waits) {
      this.#wait(first)
    } else if (first !== undefined && isUniqueViolation(error) && !first.isSecondTry) {
      // Another process was first, with the same idempotency key or the same intent: now its work can be seen.
      first.isSecondTry = true
      await this.#settle(lane, [first])
    } else {
      first?.reject(error)
    }
  }

  #conclude(entry: Entry<Command, Result>, outcome: Outcome<Result> | undefined): void {
    if (outcome === busy) this.#wait(entry)
    else if (outcome instanceof Problem) entry.reject(outcome)
    else if (outcome === undefined) entry.reject(new Error('A batch has forgotten a command'))
    else entry.resolve(outcome)
  }

  #wait(entry: Entry<Command, Result>): void {
    const { partnerId: name } = entry
    const lane = this.#waitingLanes.get(name) ?? { name, waits: true, waiting: [], running: 0 }
    this.#waitingLanes.set(name, lane)
    this.#enter(lane, entry)
  }
}

// The database is away, full or overloaded: halving would only ask it more often. Deadlocks and lock timeouts are about
// single rows.
function isEverybodys(error: unknown): boolean {
  return unavailability(error) !== undefined && !isContention(error)
}

function isContention(error: unknown): boolean {
  return isLockTimeout(error) || /^40/.test((error as { code?: string }).code ?? '')
}

function tooBusy(): Problem {
  return problem('ServiceUnavailable', 'The service is busy; nothing was done, try again', {}, { 'retry-after': '1' })
}
