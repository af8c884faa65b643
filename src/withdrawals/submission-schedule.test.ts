import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { SubmissionSchedule, scheduleSubmissions } from './submission-schedule.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const start = new Date('2026-03-10T09:00:00.000Z').getTime()
const dueAfter = (ms: number, holdSeconds = 30) => ({ holdSeconds, dueAt: new Date(start + ms) })

/** Returns when the worker is scheduled for batches of withdrawals, given their due times in milliseconds after the start. */
async function scheduledFor(batches: number[][], { holdSeconds = 30, isUndone = false } = {}): Promise<number[]> {
  const schedule = new SubmissionSchedule()
  for (const batch of batches) {
    const due = batch.map(ms => dueAfter(ms, holdSeconds))
    const made = await harness.inTx(tx => scheduleSubmissions(tx, due, schedule))
    if (!isUndone) schedule.remember(made)
  }
  const { rows } = await harness.pool.query(
    `select run_at, graphile_worker.complete_jobs(array[id]) from graphile_worker.jobs
      where task_identifier = 'submit-withdrawals' order by run_at`,
  )
  return rows.map(({ run_at: at }) => at.getTime() - start)
}

test('a single withdrawal is submitted exactly when it is due', async () => {
  expect(await scheduledFor([[0], [1_500], [5_000]])).toEqual([0, 1_500, 5_000])
})

test('under load the worker is scheduled once a second, and at most a second after anything is due', async () => {
  const batches = Array.from({ length: 100 }, (_, index) => [index * 50, index * 50 + 20])
  const scheduled = await scheduledFor(batches)
  for (const ms of batches.flat()) expect(scheduled.some(at => ms <= at && at <= ms + 1_000)).toBe(true)
  expect(scheduled.length).toBeLessThanOrEqual(7)
})

test('a batch is scheduled for when its last withdrawal is due', async () => {
  expect(await scheduledFor([[0, 300, 100]])).toEqual([300])
})

test('a hold shorter than the batch interval schedules a wake-up for each batch', async () => {
  expect(await scheduledFor([[0], [10], [20]], { holdSeconds: 0 })).toEqual([0, 10, 20])
})

test('a rolled-back submission does not suppress the next wake-up', async () => {
  expect(await scheduledFor([[0], [10], [20]], { isUndone: true })).toEqual([0, 10, 20])
})

test('a clock that was set back delays no submission', async () => {
  expect(await scheduledFor([[60_000], [60_010], [0], [10]])).toEqual([0, 1_010, 60_000, 61_010])
})
