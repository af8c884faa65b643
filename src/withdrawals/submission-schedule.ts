import type { Tx } from '../database/database.ts'
import { scheduleTask } from '../tasks.ts'

/** Withdrawals that were held for the same time, the first and the last of which are due at these instants. */
type Due = { holdSeconds: number; first: Date; last: Date }

/** What is due from `from` to `at`, after this hold, has a wake-up at `at`. */
export type ScheduledSubmission = { holdSeconds: number; from: Date; at: Date }

// In a rush nobody minds that the bank hears of a withdrawal so much later.
const sharedMs = 1_000

// Only a wake-up that is this far ahead is shared: by then whoever relies on it has committed, or has failed long ago.
const holdSecondsMin = 20

/**
 * The wake-ups that this process has made lately. Each costs as much as writing several withdrawals, and has transactions
 * wait for each other while they commit; so what becomes due one soon after the other shares one.
 */
export class SubmissionSchedule {
  readonly #latest = new Map<number, ScheduledSubmission>()

  /** To be told once their transaction has committed: nobody may rely on them before. */
  remember(made: ScheduledSubmission[]): void {
    for (const wakeUp of made) this.#latest.set(wakeUp.holdSeconds, wakeUp)
  }

  /** @returns the wake-up that these need; undefined when there is one already */
  missing({ holdSeconds, first, last }: Due): ScheduledSubmission | undefined {
    const latest = this.#latest.get(holdSeconds)
    const isRush = latest !== undefined && latest.from <= first && first <= later(latest.at, sharedMs)
    if (!isRush || holdSeconds < holdSecondsMin) return { holdSeconds, from: first, at: last }
    if (last <= latest.at) return undefined
    const shared = later(first, sharedMs)
    return { holdSeconds, from: first, at: shared < last ? last : shared }
  }
}

/**
 * Has the worker submit withdrawals when they are due: at the instant when the last of them is; in a rush, within a second.
 * @returns the wake-ups that were made
 */
export async function scheduleSubmissions(
  tx: Tx,
  due: { holdSeconds: number; dueAt: Date }[],
  schedule: SubmissionSchedule,
): Promise<ScheduledSubmission[]> {
  const needed = [...Map.groupBy(due, each => each.holdSeconds)].map(([holdSeconds, all]): Due => {
    const instants = all.map(({ dueAt }) => dueAt.getTime())
    return { holdSeconds, first: new Date(Math.min(...instants)), last: new Date(Math.max(...instants)) }
  })
  const made = needed.map(each => schedule.missing(each)).filter(each => each !== undefined)
  for (const { at } of made) await scheduleTask(tx, { task: 'submit-withdrawals', at })
  return made
}

function later(instant: Date, ms: number): Date {
  return new Date(instant.getTime() + ms)
}
