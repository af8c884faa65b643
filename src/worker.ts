import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { type Job, Logger as JobLogger, parseCronItems, type Runner, run } from 'graphile-worker'
import type pg from 'pg'
import { limitConnecting, openQueuePool } from './database/connect.ts'
import { lanesOf } from './database/database.ts'
import type { Retention } from './kernel/retention.ts'
import type { Clock } from './kernel/time.ts'
import type { ProcessMetrics } from './metrics/process-metrics.ts'
import { scopesOf } from './partners/clocks.ts'
import type { Channel } from './payouts/channels/channel.ts'
import { internalTasks, longTasks, noticeTasks, payoutTasks, retentionTasks } from './tasks.ts'
import { Delivery } from './webhooks/delivery.ts'
import type { Sender } from './webhooks/send.ts'
import { beat, limits as heartbeatLimits, signOff } from './worker/heartbeats.ts'
import type { TaskContext, TaskName, Tasks } from './worker/task.ts'

// Tasks that call external systems can hang for as long as a call may take, so they have separate slots.
const slots = { internal: 2, external: 3 }

// One listener per runner, and one connection per slot to fetch and complete jobs.
const queueConnectionsMax = 2 + slots.internal + slots.external

// A runner can end when it loses PostgreSQL. Restarting PostgreSQL takes a second, an outage takes minutes.
const restartAfterMs = { first: 500, max: 15_000 }

/** `isWorking` is false while a runner has lost its queue and is being restarted. */
export type Worker = { isWorking(): boolean; stop(): Promise<void> }

type WorkerOptions = {
  channels: Channel[]
  sender: Sender
  realNow: Clock
  retention: Retention
  notices?: Parameters<typeof noticeTasks> | undefined
  isSandbox?: boolean
  metrics?: ProcessMetrics | undefined
}

/**
 * Runs the background tasks until stopped, and survives an outage of PostgreSQL. Any number of workers may run
 * concurrently.
 * @param channels pay out withdrawals; a withdrawal in a currency without a channel stays held
 * @param options.sender sends webhook deliveries
 * @param options.realNow the real clock: the length of a claim does not follow the clock of the tasks
 * @param options.metrics measures tasks and webhook requests
 * @param options.retention how many days each kind of data is kept
 * @param options.notices the channels by which operators are told what needs attention, and how often
 * @param options.isSandbox whether partners have clocks that can be moved
 * @throws if the tasks cannot be started
 */
export async function startWorker(
  context: TaskContext,
  pool: pg.Pool,
  { channels, sender, realNow, retention, notices, isSandbox = false, metrics }: WorkerOptions,
): Promise<Worker> {
  const sandbox = isSandbox ? await import('./sandbox/tasks.ts') : undefined
  const scoped = isSandbox || lanesOf(context.db) === 'partner' ? inEachScope : (tasks: Partial<Tasks>) => tasks
  const external = { ...payoutTasks(channels), ...retentionTasks(retention) }
  // Moving a clock runs tasks that call the bank.
  const clockTasks = sandbox?.clockTasks({ ...internalTasks, ...external }) ?? {}
  // Without our type parsers: graphile-worker serialises job ids as JSON, which fails on bigint and would crash the process.
  const queue = openQueuePool(pool, { log: context.log, connectionsMax: queueConnectionsMax })
  const running: RunningRunner[] = []
  const stop = async () => {
    await Promise.all(running.map(each => each.stop()))
    await queue.end()
  }
  const startInternal = async () => {
    const runner = await startRunner(context, queue, {
      tasks: scoped(internalTasks),
      concurrency: slots.internal,
      metrics,
    })
    try {
      // Runs every task at once: work interrupted by a kill need not wait for the next minute.
      for (const task of Object.keys(internalTasks)) await runner.addJob(task, undefined, roundOf(task))
    } catch (error) {
      // Otherwise the runner would keep the process alive, with no way for the caller to stop it.
      await stopRunner(runner)
      throw error
    }
    return runner
  }
  const startExternal = async () => {
    // Long tasks are among them, so that internal tasks keep their slots.
    const tasks = { ...scoped(external), ...(notices && noticeTasks(...notices)), ...clockTasks, ...longTasks }
    const runner = await startRunner(context, queue, { tasks, concurrency: slots.external, metrics })
    // A move whose process was killed continues as soon as its lease ends, not at the next minute.
    for (const task of Object.keys(clockTasks)) await runner.addJob(task, undefined, roundOf(task))
    return runner
  }
  const isWorking = () => running.length === 2 && running.every(each => each.isRunning())
  try {
    for (const start of [startInternal, startExternal]) running.push(await keepRunning(context, start))
    limitConnecting(queue)
    const heartbeat = await startHeartbeat(context, isWorking)
    const delivery = new Delivery({ ...context, realNow, hasClocks: isSandbox, sender, metrics })
    delivery.start()
    return {
      isWorking,
      async stop() {
        await heartbeat.stop()
        await Promise.all([stop(), delivery.stop()])
      },
    }
  } catch (error) {
    await stop()
    throw error
  }
}

// Tasks that read no clock or keep real time on purpose. They ignore the scope, so one run must serve all partners: with the
// clock of one partner, the last two would delete rows that other partners still need.
const unscoped: ReadonlySet<TaskName> = new Set([
  'fold-float-changes',
  'fold-cycle-changes',
  'fold-member-counts',
  'add-up-withdrawals',
  'send-payout-batches',
  'read-bank-files',
  'reconcile-bank-accounts',
  'number-event-feeds',
  'maintain-partitions',
  'forget-member-sessions',
  'forget-user-sessions',
])

// On Citus each partner is a scope, and a round for thousands must end within the minute. A scope has one statement at a time, so the five
// slots of tasks use at most 15 of the pool's 20 connections.
const scopesAtOnceMax = 3

/** Makes each task run once in each scope, with its clock; see `scopesOf`. */
export function inEachScope(tasks: Partial<Tasks>): Partial<Tasks> {
  const wrapped = (Object.entries(tasks) as [TaskName, Tasks[TaskName]][]).map(([name, task]) => {
    if (unscoped.has(name)) return [name, task] as const
    const inScopes = async (context: TaskContext) => {
      const failures: unknown[] = []
      const scopes = (await scopesOf(context.db)).values()
      const inTurn = async () => {
        for (const { scope, offsetMs } of scopes) {
          const now = () => new Date(context.now().getTime() + offsetMs)
          // One partner's failure must not keep the others' work undone.
          await task({ ...context, scope, now }).catch(error => failures.push(error))
        }
      }
      const count = lanesOf(context.db) === 'partner' ? scopesAtOnceMax : 1
      await Promise.all(Array.from({ length: count }, inTurn))
      if (failures.length > 0) throw failures[0]
    }
    return [name, inScopes] as const
  })
  return Object.fromEntries(wrapped)
}

type Stoppable = { stop(): Promise<void> }
type RunningRunner = Stoppable & { isRunning(): boolean }

/** Sends heartbeats while the worker is working. A worker that has lost its queue must look dead. */
async function startHeartbeat({ db, log }: TaskContext, isWorking: () => boolean): Promise<Stoppable> {
  const worker = { workerId: randomUUID(), host: hostname(), processId: process.pid }
  let beating = beat(db, worker)
  await beating
  const timer = setInterval(() => {
    if (!isWorking()) return
    beating = beat(db, worker).catch(error => log.warn({ err: error }, 'could not record a heartbeat'))
  }, heartbeatLimits.beatEveryMs).unref()
  return {
    async stop() {
      clearInterval(timer)
      await beating
      // Best effort: without a database the row stays, and the worker shows as silent.
      await signOff(db, worker).catch(() => undefined)
    },
  }
}

async function keepRunning({ log }: TaskContext, start: () => Promise<Runner>): Promise<RunningRunner> {
  const stopping = new AbortController()
  let runner: Runner | undefined = await start()
  const ended = (async () => {
    for (let waitMs = restartAfterMs.first; ; ) {
      if (runner !== undefined) {
        await runner.promise.catch(error => log.error({ err: error }, 'a worker runner failed'))
        runner = undefined
        waitMs = restartAfterMs.first
      }
      if (stopping.signal.aborted) return
      log.warn({ waitMs }, 'restarting the worker runner')
      await pause(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      if (stopping.signal.aborted) return
      waitMs = Math.min(waitMs * 2, restartAfterMs.max)
      runner = await start().catch(error => {
        log.error({ err: error }, 'could not start the worker runner')
        return undefined
      })
      // `stop` was called while it was starting.
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

// Stopping a runner that has already ended throws.
async function stopRunner(runner: Runner): Promise<void> {
  await runner.stop().catch(() => undefined)
}

async function startRunner(
  context: TaskContext,
  pool: pg.Pool,
  { tasks, concurrency, metrics }: { tasks: Partial<Tasks>; concurrency: number; metrics: ProcessMetrics | undefined },
): Promise<Runner> {
  // Tasks are scheduled for when they are due. Running each every minute as well covers a missed schedule.
  const rounds = Object.keys(tasks).map(task => ({ task, match: '* * * * *', options: roundOf(task) }))
  const measured = (name: string, task: Tasks[TaskName]) => async () => {
    const { tracing } = context
    const work = () => (tracing === undefined ? task(context) : tracing.inSpan(`task ${name}`, {}, () => task(context)))
    try {
      await (metrics === undefined ? work() : metrics.measureTask(name, work))
    } catch (cause) {
      // The queue stores the message, which can have values of rows.
      throw new Error(`the task ${name} failed`, { cause })
    }
  }
  return await run({
    pgPool: pool,
    taskList: Object.fromEntries(Object.entries(tasks).map(([name, task]) => [name, measured(name, task)])),
    parsedCronItems: parseCronItems(rounds),
    concurrency,
    // Without delays, a job that cannot be completed ends the runner, which restarts. With them, it would end the process.
    preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
    noHandleSignals: true,
    logger: new JobLogger(() => (level, message, meta) => {
      // The runner's info lines are noise to an operator.
      if (level !== 'error' && level !== 'warning') return
      const error = meta?.error ?? meta?.fatalError
      const err = error instanceof Error ? (error.cause ?? error) : error
      const task = (meta?.job as Job | undefined)?.task_identifier
      const failure = task === undefined ? 'the worker runner failed' : 'a task failed'
      // The runner's message quotes the error's, which can have values of rows; the serializer of `err` leaves them out.
      context.log[level === 'error' ? 'error' : 'warn']({ task, err }, err === undefined ? message : failure)
    }),
  })
}

function roundOf(task: string) {
  return { jobKey: `round:${task}`, maxAttempts: 5 }
}
