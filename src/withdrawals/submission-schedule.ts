import type { Tx } from '../database/database.ts'
import { scheduleTask } from '../worker/task.ts'

/** Withdrawals with the same hold; when the first and the last of them are due. */
type Due = { holdSeconds: number; first: Date; last: Date }

/** A submission at `at` covers the withdrawals with this hold that are due from `from` to `at`. */
export type ScheduledSubmission = { holdSeconds: number; from: Date; at: Date }

// Under load a submission may be this much late.
const sharedMs = 1_000

// Only a submission this far ahead is shared: by then every transaction that relies on it has committed or failed.
const holdSecondsMin = 20

/**
 * The submissions that this process has scheduled lately. Scheduling one costs as much as writing several withdrawals, and
 * makes transactions wait for each other at commit, so withdrawals that are due shortly after each other share one.
 */
export class SubmissionSchedule {
  readonly #latest = new Map<number, ScheduledSubmission>()

  /** Call it after the transaction of the submissions has committed: until then they may be rolled back. */
  remember(made: ScheduledSubmission[]): void {
    for (const submission of made) this.#latest.set(submission.holdSeconds, submission)
  }

  /** @returns the submission to schedule for these; undefined if one covers them already */
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
 * Schedules the submission of withdrawals for when the last of them is due; under load, up to a second later.
 * @returns the submissions that were scheduled
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
