import { setTimeout as pause } from 'node:timers/promises'
import { Logger as JobLogger, parseCronItems, type Runner, run } from 'graphile-worker'
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

// A runner that ends at once must not fill the log, and one that ends once should be back soon.
const restart = { pauseMsMin: 500, pauseMsMax: 30_000 }

/**
 * Runs the background steps until stopped. A runner gives up after some failures in a row, as when the database stays
 * away; it is then started again, because without it pay would wait for an operator. Any number of workers may run beside
 * each other.
 */
export async function startWorker(context: JobContext, pool: pg.Pool): Promise<{ stop(): Promise<void> }> {
  const stopping = new AbortController()
  let runner = await startRunner(context, pool)
  const ended = keepRunning()
  return {
    async stop() {
      stopping.abort()
      // It says no when it has ended by itself already.
      await runner.stop().catch(() => undefined)
      await ended
    },
  }

  async function keepRunning(): Promise<void> {
    let pauseMs = restart.pauseMsMin
    while (!stopping.signal.aborted) {
      const startedAtMs = performance.now()
      const error = await runner.promise.catch((reason: unknown) => reason)
      if (stopping.signal.aborted) return
      context.log.error({ err: error }, 'the worker has ended and is started again')
      if (performance.now() - startedAtMs > restart.pauseMsMax) pauseMs = restart.pauseMsMin
      // Jitter, so that several workers do not come back in the same moment.
      await pause(pauseMs * (0.5 + Math.random() / 2), undefined, { signal: stopping.signal }).catch(() => undefined)
      pauseMs = Math.min(pauseMs * 2, restart.pauseMsMax)
      if (stopping.signal.aborted) return
      // Where this fails, the loop sees the old runner's end again.
      runner = await startRunner(context, pool).catch(() => runner)
    }
  }
}

async function startRunner(context: JobContext, pool: pg.Pool): Promise<Runner> {
  return await run({
    pgPool: pool,
    taskList: Object.fromEntries(Object.entries(jobs).map(([name, job]) => [name, () => job(context)])),
    parsedCronItems: parseCronItems(rounds),
    concurrency: 2,
    noHandleSignals: true,
    logger: new JobLogger(scope => (level, message, meta) => {
      // Its informational chatter is of no use to an operator; what fails is.
      if (level === 'error' || level === 'warning') {
        context.log[level === 'error' ? 'error' : 'warn']({ job: scope.taskIdentifier, err: meta?.error }, message)
      }
    }),
  })
}
