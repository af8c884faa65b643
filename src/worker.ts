import { Logger as JobLogger, parseCronItems, run } from 'graphile-worker'
import type pg from 'pg'
import { httpJobs } from './http/jobs.ts'
import type { JobContext, Jobs } from './jobs.ts'
import { payRunJobs } from './pay-runs/jobs.ts'
import { withdrawalJobs } from './withdrawals/jobs.ts'

const jobs: Jobs = { ...payRunJobs, ...withdrawalJobs, ...httpJobs }

// Steps that are due at an instant are woken then; the round each minute is for the ones that nobody woke.
const rounds = Object.keys(jobs).map(task => ({
  task,
  match: '* * * * *',
  options: { jobKey: `round:${task}`, maxAttempts: 5 },
}))

/** Runs the background steps until stopped. Any number of workers may run beside each other. */
export async function startWorker(
  context: JobContext,
  pool: pg.Pool,
): Promise<{ stop(): Promise<void>; done: Promise<void> }> {
  const runner = await run({
    pgPool: pool,
    taskList: Object.fromEntries(Object.entries(jobs).map(([name, job]) => [name, () => job(context)])),
    parsedCronItems: parseCronItems(rounds),
    concurrency: 2,
    noHandleSignals: true,
    logger: new JobLogger(scope => (level, message, meta) => {
      // Its informational chatter is of no use to an operator; what fails is.
      if (level === 'error' || level === 'warning') {
        context.log[level === 'error' ? 'error' : 'warn']({ job: scope.taskIdentifier, ...meta }, message)
      }
    }),
  })
  return { stop: () => runner.stop(), done: runner.promise }
}
