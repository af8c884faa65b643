import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { Logger as JobLogger, parseCronItems, type Runner, run } from 'graphile-worker'
import type pg from 'pg'
import { connectLike } from './db.ts'
import { eventJobs } from './events/jobs.ts'
import { floatJobs } from './float/jobs.ts'
import { idempotencyJobs } from './idempotency/jobs.ts'
import type { JobContext, Jobs } from './jobs.ts'
import { ledgerJobs } from './ledger/jobs.ts'
import { memberJobJobs } from './member-imports/jobs.ts'
import { payCycleJobs } from './pay-cycles/jobs.ts'
import { payRunJobs } from './pay-runs/jobs.ts'
import { payoutJobs } from './payouts/jobs.ts'
import type { Rail } from './payouts/rail.ts'
import { withdrawalJobs } from './withdrawals/jobs.ts'
import { beat, limits as heartbeatLimits, signOff } from './workers/heartbeats.ts'

const jobs: Jobs = {
  ...payRunJobs,
  ...memberJobJobs,
  ...payCycleJobs,
  ...withdrawalJobs,
  ...idempotencyJobs,
  ...ledgerJobs,
  ...eventJobs,
  ...floatJobs,
}

// Steps that call outside may hang as long as a call may: they have slots of their own and never hold up the others.
const slots = { inside: 2, outside: 3 }

// Two that listen, and one for each slot that takes or gives back a job.
const queueConnectionsMax = 2 + slots.inside + slots.outside

// A runner ends when PostgreSQL goes away at the wrong moment: a restart of PostgreSQL takes a second, an outage minutes.
const restartAfterMs = { first: 500, max: 15_000 }

/** `isWorking` is false while its queue is lost and it is being restarted. */
export type Worker = { isWorking(): boolean; stop(): Promise<void> }

/**
 * Runs the background steps until stopped, and does not leave when PostgreSQL does. Any number of workers may run beside
 * each other.
 * @param rail where withdrawals go; null leaves them held
 * @throws when the steps cannot be started at all
 */
export async function startWorker(context: JobContext, pool: pg.Pool, rail: Rail | null): Promise<Worker> {
  // graphile-worker writes job ids as JSON, which knows no bigint: with our types every step that failed would end us.
  const queue = connectLike(pool, { log: context.log, connectionsMax: queueConnectionsMax })
  const running: RunningRunner[] = []
  const stop = async () => {
    await Promise.all(running.map(each => each.stop()))
    await queue.end()
  }
  const inside = async () => {
    const runner = await startRunner(context, queue, { jobs, concurrency: slots.inside })
    try {
      // The first round is now: what was cut off by a kill need not wait for the next minute.
      for (const task of Object.keys(jobs)) await runner.addJob(task, undefined, roundOf(task))
    } catch (error) {
      // Otherwise it would run on, unknown to the caller, and keep the process alive without a worker that can be stopped.
      await stopRunner(runner)
      throw error
    }
    return runner
  }
  const outside = () => startRunner(context, queue, { jobs: payoutJobs(rail), concurrency: slots.outside })
  const isWorking = () => running.length === 2 && running.every(each => each.isRunning())
  try {
    for (const start of [inside, outside]) running.push(await keepRunning(context, start))
    const heart = await startHeart(context, isWorking)
    return {
      isWorking,
      async stop() {
        await heart.stop()
        await stop()
      },
    }
  } catch (error) {
    await stop()
    throw error
  }
}

type Stoppable = { stop(): Promise<void> }
type RunningRunner = Stoppable & { isRunning(): boolean }

/** Beats for as long as the worker works: one that has lost its queue is to be seen as silent. */
async function startHeart({ db, log }: JobContext, isWorking: () => boolean): Promise<Stoppable> {
  const worker = { workerId: randomUUID(), host: hostname(), processId: process.pid }
  let beating = beat(db, worker)
  await beating
  const timer = setInterval(() => {
    if (!isWorking()) return
    beating = beat(db, worker).catch(error => log.warn({ err: error }, 'a heartbeat of the worker was lost'))
  }, heartbeatLimits.beatEveryMs).unref()
  return {
    async stop() {
      clearInterval(timer)
      await beating
      // Best effort: without a database the row stays, and grows silent.
      await signOff(db, worker).catch(() => undefined)
    },
  }
}

async function keepRunning({ log }: JobContext, start: () => Promise<Runner>): Promise<RunningRunner> {
  const stopping = new AbortController()
  let runner: Runner | undefined = await start()
  const ended = (async () => {
    for (let waitMs = restartAfterMs.first; ; ) {
      if (runner !== undefined) {
        await runner.promise.catch(error => log.error({ err: error }, 'the worker ended with an error'))
        runner = undefined
        waitMs = restartAfterMs.first
      }
      if (stopping.signal.aborted) return
      log.warn({ waitMs }, 'the worker is started again')
      await pause(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      if (stopping.signal.aborted) return
      waitMs = Math.min(waitMs * 2, restartAfterMs.max)
      runner = await start().catch(error => {
        log.error({ err: error }, 'the worker could not be started')
        return undefined
      })
      // Told to stop while it was starting.
      if (stopping.signal.aborted && runner !== undefined) await stopRunner(runner)
    }
  })()
  return {
    isRunning: () => runner !== undefined,
    async stop() {
      stopping.abort()
      if (runner !== undefined) await stopRunner(runner)
      await ended
    },
  }
}

// A runner that has just ended by itself refuses to be stopped.
async function stopRunner(runner: Runner): Promise<void> {
  await runner.stop().catch(() => undefined)
}

async function startRunner(
  context: JobContext,
  pool: pg.Pool,
  { jobs, concurrency }: { jobs: Jobs; concurrency: number },
): Promise<Runner> {
  // Steps that are due at an instant are woken then; the round each minute is for the ones that nobody woke.
  const rounds = Object.keys(jobs).map(task => ({ task, match: '* * * * *', options: roundOf(task) }))
  return await run({
    pgPool: pool,
    taskList: Object.fromEntries(Object.entries(jobs).map(([name, job]) => [name, () => job(context)])),
    parsedCronItems: parseCronItems(rounds),
    concurrency,
    // A job that cannot be given back then ends the runner, which is started again. Otherwise it would end the process.
    preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
    noHandleSignals: true,
    logger: new JobLogger(scope => (level, message, meta) => {
      // Its informational chatter is of no use to an operator; what fails is.
      if (level === 'error' || level === 'warning') {
        context.log[level === 'error' ? 'error' : 'warn']({ job: scope.taskIdentifier, err: meta?.error }, message)
      }
    }),
  })
}

function roundOf(task: string) {
  return { jobKey: `round:${task}`, maxAttempts: 5 }
}
