import type { KeyObject } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Db } from '../database/database.ts'
import * as events from '../events/events.ts'
import type { Clock } from '../kernel/time.ts'
import type { ProcessMetrics } from '../metrics/process-metrics.ts'
import * as attempts from './attempts.ts'
import { fanOut, hasEndpoints, partnersToFanOut, type Unfinished } from './fan-out.ts'
import { Recorder } from './recorder.ts'
import { asksToSlowDown } from './rules.ts'
import { openHeaders, openSecret } from './sealed.ts'
import type { Sender } from './send.ts'
import { keyOf } from './signing.ts'

const limits = {
  // Endpoints that a process delivers to at once. With four requests each: 512 sockets, and 20 MB of bodies and responses.
  turnsMax: 128,
  requestsPerEndpointMax: 4,
  // Deliveries that are read together. A body has some hundred bytes, so those of all turns take 20 MB.
  readAtOnceMax: 200,
  // How many deliveries are left when the next read starts.
  readAheadFrom: 50,
  // How long a turn starts requests. A slow endpoint then makes room for those that wait.
  turnMsMax: 3_000,
  // Longer than the longest turn: its requests (3 s), the last of them (15 s), and recording them. Another process takes over
  // the endpoints of a killed one after this time.
  leaseMs: 30_000,
  // A fan-out writes at most 16 times as many deliveries, in some hundred milliseconds.
  eventsPerFanOutMax: 500,
  numberedAtOnceMax: 2_000,
  // Partners whose events are fanned out at once: each takes a connection for some milliseconds.
  fanOutsMax: 4,
  // How often to look for events and due deliveries: a part of the second within which the first attempt is due.
  pollMs: 150,
  pollWithoutEndpointsMs: 1_000,
  // After an error, such as an outage of the database.
  afterErrorMs: 2_000,
  // Stopping the program may take nine seconds.
  stopMsMax: 5_000,
}

/**
 * `now` decides what is due, `realNow` how long a claim lasts. `hasClocks`: on a sandbox, the clock of a partner may be ahead
 * of `now`.
 */
export type DeliveryContext = {
  db: Db
  log: Logger
  now: Clock
  realNow: Clock
  hasClocks: boolean
  sender: Sender
  metrics?: ProcessMetrics | undefined
}

type Endpoint = Pick<attempts.Claimed, 'partnerId' | 'id' | 'url' | 'offsetMs'> & {
  headers: Record<string, string>
  keys: KeyObject[]
}

/** How the requests of a turn have gone so far. */
type Flow = { failureCount: number; isImpaired: boolean; isOver: boolean }

/** Makes the deliveries of all partners, until stopped. Any number of processes may do so concurrently. */
export class Delivery {
  private readonly context: DeliveryContext
  private readonly recorder: Recorder
  private readonly turns = new Set<Promise<void>>()
  private readonly busy = new Map<string, number>()
  private readonly stopping = new AbortController()
  private readonly untilClaim = new InterruptibleWait()
  private isAbandoned = false
  private hasEndpoints = false
  private running: Promise<unknown> | undefined

  constructor(context: DeliveryContext) {
    this.context = context
    this.recorder = new Recorder(context)
  }

  start(): void {
    this.running = Promise.all([
      this.repeat(() => this.fanOutAll(), new InterruptibleWait()),
      this.repeat(() => this.claimAll(), this.untilClaim),
    ])
  }

  /** Starts no further request, and waits until those in flight are recorded. Slow requests are not awaited, but made again. */
  async stop(): Promise<void> {
    this.stopping.abort()
    await this.running
    const late = new AbortController()
    const waited = pause(limits.stopMsMax, undefined, { signal: late.signal }).catch(() => undefined)
    await Promise.race([Promise.all(this.turns), waited])
    late.abort()
    this.isAbandoned = true
    await this.context.sender.close()
    await Promise.all(this.turns)
  }

  /** Makes every attempt that is due, for a caller that does not `start`. */
  async deliverDue(): Promise<void> {
    for (;;) {
      const fannedOut = await this.fanOutAll()
      const claimed = await this.claimAll()
      if (fannedOut.count + claimed.count === 0) return
      await Promise.all(this.turns)
    }
  }

  private async repeat(work: () => Promise<{ hasMore: boolean }>, wait: InterruptibleWait): Promise<void> {
    const { log } = this.context
    while (!this.stopping.signal.aborted) {
      let waitMs: number
      try {
        const { hasMore } = await work()
        waitMs = hasMore ? 0 : this.hasEndpoints ? limits.pollMs : limits.pollWithoutEndpointsMs
      } catch (error) {
        log.warn({ err: error }, 'could not look for webhook deliveries; trying again')
        waitMs = limits.afterErrorMs
      }
      if (waitMs > 0) await wait.wait(waitMs, this.stopping.signal)
    }
  }

  private async fanOutAll(): Promise<{ count: number; hasMore: boolean }> {
    const { db, log, hasClocks } = this.context
    this.hasEndpoints = await hasEndpoints(db)
    if (!this.hasEndpoints) return { count: 0, hasMore: false }
    const partners = (await partnersToFanOut(db, { hasClocks })).values()
    let count = 0
    let hasMore = false
    const work = async () => {
      for (const partner of partners) {
        try {
          const fannedOut = await this.fanOutOne(partner)
          count += fannedOut
          hasMore ||= fannedOut === limits.eventsPerFanOutMax
        } catch (error) {
          // A failure must not delay other partners. The feed is due again in the next round.
          log.warn({ err: error, partnerId: partner.partnerId }, 'could not fan out events to webhook endpoints')
        }
      }
    }
    await Promise.all(Array.from({ length: limits.fanOutsMax }, work))
    if (count > 0) this.untilClaim.interrupt()
    return { count, hasMore }
  }

  private async fanOutOne({ partnerId, offsetMs, hasUnnumbered }: Unfinished): Promise<number> {
    const { db } = this.context
    if (hasUnnumbered) {
      const options = { partnerId, countMax: limits.numberedAtOnceMax, waits: false }
      await db.transaction().execute(tx => events.numberFeed(tx, options))
    }
    const options = { partnerId, countMax: limits.eventsPerFanOutMax, waits: false, now: this.nowOf(offsetMs) }
    return await db.transaction().execute(tx => fanOut(tx, options))
  }

  private async claimAll(): Promise<{ count: number; hasMore: boolean }> {
    const { db, now, realNow, hasClocks } = this.context
    const countMax = limits.turnsMax - this.turns.size
    if (countMax === 0 || !this.hasEndpoints) return { count: 0, hasMore: false }
    const { busy } = this
    const claimed = await attempts.claim(db, {
      ...{ countMax, busy, now: now(), realNow: realNow(), leaseMs: limits.leaseMs, hasClocks },
    })
    for (const endpoint of claimed) this.startTurn(endpoint)
    return { count: claimed.length, hasMore: false }
  }

  private startTurn(endpoint: attempts.Claimed): void {
    const { partnerId, id } = endpoint
    this.busy.set(partnerId, (this.busy.get(partnerId) ?? 0) + 1)
    const turn = this.turn(endpoint)
      // The claim expires, and attempts that were not recorded are made again.
      .catch(error =>
        this.context.log.warn({ err: error, partnerId, webhookId: id }, 'webhook deliveries were interrupted'),
      )
      .finally(() => {
        this.turns.delete(turn)
        const count = (this.busy.get(partnerId) ?? 1) - 1
        if (count === 0) this.busy.delete(partnerId)
        else this.busy.set(partnerId, count)
        this.untilClaim.interrupt()
      })
    this.turns.add(turn)
  }

  // Claim, send, record, release. If the process is killed in between, deliveries that were not recorded are sent again.
  private async turn(claimed: attempts.Claimed): Promise<void> {
    const { db } = this.context
    const { partnerId, id, failureCount, isImpaired } = claimed
    if (!claimed.enabled) await attempts.endPending(db, claimed)
    const endpoint = {
      ...{ partnerId, id, url: claimed.url, offsetMs: claimed.offsetMs },
      headers: openHeaders(db, claimed),
      keys: claimed.secrets.map(secret => keyOf(openSecret(db, { partnerId, secret }))),
    }
    const flow = { failureCount, isImpaired, isOver: false }
    const next = this.readAhead(claimed, flow)
    const recorded: Promise<void>[] = []
    const sendAll = async () => {
      for (let delivery = await next(); delivery !== undefined; delivery = await next()) {
        const attempt = await this.attempt(endpoint, delivery.due, flow)
        // The next request need not wait for it.
        const record = this.recorder.add(attempt).then(delivery.recorded)
        // `Promise.all` below sees the error, but only once all requests have been made.
        record.catch(() => undefined)
        recorded.push(record)
      }
    }
    await Promise.all(Array.from({ length: limits.requestsPerEndpointMax }, sendAll))
    await Promise.all(recorded)
    const now = this.nowOf(claimed.offsetMs)
    await db.transaction().execute(tx => attempts.release(tx, { partnerId, id, now }))
  }

  /**
   * Returns a function that returns the next delivery of a turn, or undefined once nothing is due or the turn is over. It reads
   * ahead; otherwise an endpoint with a backlog would wait for a read after each batch.
   */
  private readAhead(endpoint: attempts.Claimed, flow: Flow) {
    const isThrottled = attempts.isThrottled(endpoint.failureCount)
    const endsAtMs = performance.now() + limits.turnMsMax
    const queue: attempts.Due[] = []
    // Queued, in flight or not recorded yet: a read would return them again.
    const taken = new Set<string>()
    let reading: Promise<number> | undefined
    const read = async () => {
      const countMax = isThrottled ? 1 : limits.readAtOnceMax
      const now = this.nowOf(endpoint.offsetMs)
      const due = await attempts.readDue(this.context.db, { endpoint, except: [...taken], countMax, now })
      for (const { eventId } of due) taken.add(eventId)
      queue.push(...due)
      return due.length
    }
    const readOnce = () => {
      reading ??= read().finally(() => {
        reading = undefined
      })
      return reading
    }
    return async () => {
      for (;;) {
        if (flow.isOver || this.stopping.signal.aborted || performance.now() > endsAtMs) return undefined
        const due = queue.shift()
        if (due !== undefined) {
          if (isThrottled) flow.isOver = true
          // If it fails, the next read reports the error.
          else if (queue.length === limits.readAheadFrom) readOnce().catch(() => undefined)
          return { due, recorded: () => void taken.delete(due.eventId) }
        }
        if ((await readOnce()) === 0 && queue.length === 0) return undefined
      }
    }
  }

  private async attempt(
    { partnerId, id, url, headers, keys, offsetMs }: Endpoint,
    { eventId, reason, scheduledCount, body }: attempts.Due,
    flow: Flow,
  ): Promise<attempts.Attempt> {
    const at = this.nowOf(offsetMs)
    const isTest = reason === 'test'
    const outcome = await this.context.sender.send({
      ...{ url, keys, id: eventId, body },
      headers: isTest ? { ...headers, 'midmonth-test': 'true' } : headers,
    })
    // Cut off by `stop`, which says nothing about the endpoint.
    if (this.isAbandoned) throw new Error('stopped while a request was in flight; it will be made again')
    const hasFailed = outcome.error !== null
    this.context.metrics?.attempted(hasFailed ? 'failed' : 'delivered')
    const affectsHealth = hasFailed || flow.isImpaired
    flow.isImpaired ||= hasFailed
    flow.failureCount = hasFailed ? flow.failureCount + 1 : 0
    flow.isOver ||=
      hasFailed && (attempts.isThrottled(flow.failureCount) || outcome.error === 'gone' || asksToSlowDown(outcome))
    return { ...outcome, partnerId, endpointId: id, eventId, reason, scheduledCount, at, affectsHealth }
  }

  private nowOf(offsetMs: number): Date {
    return new Date(this.context.now().getTime() + offsetMs)
  }
}

class InterruptibleWait {
  private interrupted = Promise.withResolvers<void>()

  /** Ends the wait, or the next one if none is running. */
  interrupt(): void {
    this.interrupted.resolve()
  }

  async wait(ms: number, stopping: AbortSignal): Promise<void> {
    const done = new AbortController()
    const signal = AbortSignal.any([stopping, done.signal])
    await Promise.race([this.interrupted.promise, pause(ms, undefined, { signal }).catch(() => undefined)])
    done.abort()
    this.interrupted = Promise.withResolvers()
  }
}
