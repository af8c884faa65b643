import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { within } from '../kernel/within.ts'
import { type Db, sql } from './database.ts'
import { outageOutcome, Unavailable } from './errors.ts'
import { timelineNow } from './place.ts'

const limits = {
  // A replica in the same network replays within some milliseconds; waiting for longer is slower than reading from the primary.
  waitMsMax: 50,
  pollMs: 5,
  answerMsMax: 500,
  // After a replica was late, or did not answer, reads go to the primary at once for this long.
  lateMs: 1_000,
  downMs: 10_000,
}

type Position = { position: string; timeline: number }

/** A replica for reads that decide nothing. They see every write that was acknowledged before, as on the primary. */
export class Replica {
  readonly #primary: Db
  readonly #replica: Db
  readonly #log: Logger
  #avoidedUntil = 0

  constructor({ primary, replica, log }: { primary: Db; replica: Db; log: Logger }) {
    this.#primary = primary
    this.#replica = replica
    this.#log = log
  }

  /** Reads from the replica, or from the primary if the replica is late or fails. */
  async read<T>(work: (reader: Db) => Promise<T>): Promise<T> {
    const reader = await this.upToDate()
    if (reader === this.#primary) return await work(reader)
    try {
      return await work(reader)
    } catch (error) {
      // Replaying may also cancel a query that needs what it removes.
      if (outageOutcome(error) === undefined) throw error
      this.#avoid(limits.downMs, error)
      return await work(this.#primary)
    }
  }

  /** The replica, once it has replayed everything that was committed before the call; the primary if it does not in time. */
  async upToDate(): Promise<Db> {
    if (performance.now() < this.#avoidedUntil) return this.#primary
    // What is wrong with the primary shows when it is read.
    const written = await this.#written().catch(() => undefined)
    if (written === undefined) return this.#primary
    try {
      const late = () => new Unavailable('the replica did not answer in time', 'nothing-done')
      if (await within(limits.answerMsMax, this.#catchesUp(written), late)) return this.#replica
      this.#avoid(limits.lateMs)
    } catch (error) {
      this.#avoid(limits.downMs, error)
    }
    return this.#primary
  }

  // Positions are comparable only on one timeline: after a failover, a standby may have more of the old one than the primary.
  async #written(): Promise<Position | undefined> {
    const { rows } = await sql<Position>`
      select pg_current_wal_flush_lsn()::text as position,
             ('x' || ${timelineNow})::bit(32)::integer as timeline`.execute(this.#primary)
    return rows[0]
  }

  async #catchesUp({ position, timeline }: Position): Promise<boolean> {
    const deadline = performance.now() + limits.waitMsMax
    for (;;) {
      const { rows: states } = await sql<{ isReady: boolean }>`
        select pg_is_in_recovery() and pg_last_wal_replay_lsn() >= ${position}::pg_lsn
               and (pg_control_recovery()).min_recovery_end_timeline = ${timeline} as is_ready`.execute(this.#replica)
      if (states[0]?.isReady === true) return true
      if (performance.now() > deadline) return false
      await pause(limits.pollMs)
    }
  }

  #avoid(ms: number, error?: unknown): void {
    this.#avoidedUntil = performance.now() + ms
    if (error !== undefined)
      this.#log.warn({ err: error }, `the replica cannot be read, so for ${ms / 1_000} s the primary is`)
  }
}
