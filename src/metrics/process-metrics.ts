import { getHeapStatistics } from 'node:v8'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** The state of a pool of connections to the database. */
export type PoolState = { totalCount: number; idleCount: number; waitingCount: number }

/** One request that was responded to. @property operation its id in the OpenAPI documents; undefined for files, pages and unknown paths */
export type AnsweredRequest = { operation: string | undefined; status: number; ms: number }

// Nearly all responses take milliseconds, and none of an ordinary operation more than five seconds.
const secondsOfRequests = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const secondsOfTasks = [0.01, 0.1, 1, 10, 60, 600]
const sizesOfBatches = [1, 2, 4, 8, 16, 32, 64, 128]

/** The metrics of a process, besides those of its runtime. */
export const processMetrics = {
  requests: {
    name: 'midmonth_http_requests_total',
    help: 'HTTP requests, by operation and status code.',
    labelNames: ['operation', 'code'],
  },
  requestSeconds: {
    name: 'midmonth_http_request_duration_seconds',
    help: 'How long requests took from their arrival to the end of their response, by operation.',
    labelNames: ['operation'],
  },
  batchSize: {
    name: 'midmonth_batch_commands',
    help: 'Commands per batch that was sent to the database.',
    labelNames: ['batch'],
  },
  taskSeconds: {
    name: 'midmonth_task_duration_seconds',
    help: 'How long background tasks took, by task and outcome.',
    labelNames: ['task', 'outcome'],
  },
  attempts: { name: 'midmonth_webhook_attempts_total', help: 'Webhook requests, by outcome.', labelNames: ['outcome'] },
  connections: {
    name: 'midmonth_database_connections',
    help: 'Connections to the database, by pool and state; waiting counts callers without a connection.',
    labelNames: ['pool', 'state'],
  },
  heapLimit: {
    name: 'midmonth_heap_limit_bytes',
    help: 'The size of the heap at which the process ends.',
    labelNames: [],
  },
  databaseUp: {
    name: 'midmonth_database_up',
    help: 'Whether the metrics of the installation could be read.',
    labelNames: [],
  },
} as const

/**
 * What a process measures of itself, for Prometheus. Labels hold only names that the program declares, so that their number is bounded,
 * and no personal data.
 */
export class ProcessMetrics {
  readonly #registry = new Registry()
  readonly #requests: Counter<'operation' | 'code'>
  readonly #requestSeconds: Histogram<'operation'>
  readonly #batchSize: Histogram<'batch'>
  readonly #taskSeconds: Histogram<'task' | 'outcome'>
  readonly #attempts: Counter<'outcome'>
  readonly #databaseUp: Gauge

  /** @param pools the pools of connections to the database, by name */
  constructor(pools: Readonly<Record<string, PoolState>>) {
    const registers = [this.#registry]
    const { requests, requestSeconds, batchSize, taskSeconds, attempts } = processMetrics
    collectDefaultMetrics({ register: this.#registry })
    this.#requests = new Counter({ ...requests, registers })
    this.#requestSeconds = new Histogram({ ...requestSeconds, buckets: secondsOfRequests, registers })
    this.#batchSize = new Histogram({ ...batchSize, buckets: sizesOfBatches, registers })
    this.#taskSeconds = new Histogram({ ...taskSeconds, buckets: secondsOfTasks, registers })
    this.#attempts = new Counter({ ...attempts, registers })
    this.#databaseUp = new Gauge({ ...processMetrics.databaseUp, registers })
    new Gauge({ ...processMetrics.heapLimit, registers }).set(getHeapStatistics().heap_size_limit)
    new Gauge({
      ...processMetrics.connections,
      registers,
      collect() {
        for (const [pool, { totalCount, idleCount, waitingCount }] of Object.entries(pools)) {
          this.set({ pool, state: 'busy' }, totalCount - idleCount)
          this.set({ pool, state: 'idle' }, idleCount)
          this.set({ pool, state: 'waiting' }, waitingCount)
        }
      },
    })
  }

  answered({ operation = 'other', status, ms }: AnsweredRequest): void {
    this.#requests.inc({ operation, code: status })
    this.#requestSeconds.observe({ operation }, ms / 1_000)
  }

  sentBatch(batch: string, commandCount: number): void {
    this.#batchSize.observe({ batch }, commandCount)
  }

  /** Runs a task, and measures it. */
  async measureTask(task: string, work: () => Promise<void>): Promise<void> {
    const startMs = performance.now()
    let outcome = 'failed'
    try {
      await work()
      outcome = 'done'
    } finally {
      this.#taskSeconds.observe({ task, outcome }, (performance.now() - startMs) / 1_000)
    }
  }

  attempted(outcome: 'delivered' | 'failed'): void {
    this.#attempts.inc({ outcome })
  }

  /** In the exposition format of Prometheus. @param isDatabaseUp whether the metrics of the installation could be read */
  async exposed({ isDatabaseUp }: { isDatabaseUp: boolean }): Promise<string> {
    this.#databaseUp.set(isDatabaseUp ? 1 : 0)
    return await this.#registry.metrics()
  }
}

/** The media type of the exposition format. */
export const metricsMediaType = Registry.PROMETHEUS_CONTENT_TYPE
