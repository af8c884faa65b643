import type { Columns } from '../database/database.ts'

const secondMs = 1_000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/** The waits before the retries of a delivery. After the last one has failed, the delivery has failed. */
export const retryWaitsMs = [
  5 * secondMs,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  5 * hourMs,
  10 * hourMs,
  14 * hourMs,
  20 * hourMs,
  24 * hourMs,
]

/**
 * When a delivery is retried: after the wait of the schedule, with jitter; null if it has failed for good.
 * @param failures failed attempts of the schedule so far, including this one
 * @param random 0 to 1: makes the wait up to a fifth longer, so that deliveries that failed together are not retried together
 */
export function nextAttemptAt({ failures, now, random }: { failures: number; now: Date; random: number }): Date | null {
  const waitMs = retryWaitsMs[failures - 1]
  return waitMs === undefined ? null : new Date(now.getTime() + waitMs * (1 + random / 5))
}

export const flowLimits = {
  // An endpoint that fails this often in a row gets one attempt at a time, with a pause that doubles.
  failuresMax: 3,
  pauseMs: { first: 5 * secondMs, max: 5 * minuteMs },
  // The longest wait of the retry schedule.
  retryAfterMsMax: dayMs,
}

const healthLimits = {
  failingMsMax: 5 * dayMs,
  // A single failure followed by days without events is not an outage.
  failingDaysMin: 3,
}

/**
 * The health of an endpoint. Flow control follows every attempt, health only those of the retry schedule.
 * @property lastFailingDay the last day with a failure, in UTC
 */
export type Health = Columns<
  'webhookEndpoints',
  | 'enabled'
  | 'disabledReason'
  | 'failureCount'
  | 'blockedUntil'
  | 'failingSince'
  | 'failingDays'
  | 'lastFailingDay'
  | 'isRecovering'
>

export const healthy = {
  failureCount: 0,
  blockedUntil: null,
  failingSince: null,
  failingDays: 0,
  lastFailingDay: null,
} satisfies Partial<Health>

export type Attempted = {
  isSuccess: boolean
  status: number | null
  retryAfterSeconds: number | null
  reason: 'schedule' | 'replay' | 'test'
  at: Date
}

/** Applies an attempt to the health of its endpoint. Returns the new health, and the event to emit. */
export function applyAttempt(
  health: Health,
  attempt: Attempted,
  random: number,
): { health: Health; event: 'webhook.disabled' | 'webhook.recovered' | null } {
  const counts = attempt.reason === 'schedule'
  if (attempt.isSuccess) {
    if (!counts) return { health: { ...health, failureCount: 0, blockedUntil: null }, event: null }
    const hasRecovered = health.isRecovering && health.enabled
    return {
      health: { ...health, ...healthy, isRecovering: health.isRecovering && !hasRecovered },
      event: hasRecovered ? 'webhook.recovered' : null,
    }
  }
  const slowed = { ...health, ...pauseAfter(health, attempt, random) }
  if (!counts || !health.enabled) return { health: slowed, event: null }
  const day = attempt.at.toISOString().slice(0, 10)
  const failing = {
    ...slowed,
    failingSince: health.failingSince ?? attempt.at,
    failingDays: health.failingDays + (health.lastFailingDay === day ? 0 : 1),
    lastFailingDay: day,
  }
  const isGone = attempt.status === 410
  const hasFailedForLong =
    attempt.at.getTime() - failing.failingSince.getTime() >= healthLimits.failingMsMax &&
    failing.failingDays >= healthLimits.failingDaysMin
  if (!isGone && !hasFailedForLong) return { health: failing, event: null }
  const disabledReason = isGone ? 'gone' : 'failing'
  const disabled = { enabled: false, disabledReason, isRecovering: true, blockedUntil: null } as const
  return { health: { ...failing, ...disabled }, event: 'webhook.disabled' }
}

/** Whether an endpoint responded that it is overloaded, or is behind a proxy that cannot reach it. */
export function asksToSlowDown({
  status,
  retryAfterSeconds,
}: Pick<Attempted, 'status' | 'retryAfterSeconds'>): boolean {
  return retryAfterSeconds !== null || status === 429 || status === 502 || status === 504
}

function pauseAfter(health: Health, attempt: Attempted, random: number): Pick<Health, 'failureCount' | 'blockedUntil'> {
  const slowsDown = asksToSlowDown(attempt)
  const failureCount = Math.max(health.failureCount + 1, slowsDown ? flowLimits.failuresMax : 0)
  if (failureCount < flowLimits.failuresMax) return { failureCount, blockedUntil: health.blockedUntil }
  const doublings = Math.min(failureCount - flowLimits.failuresMax, 10)
  const pauseMs = Math.min(flowLimits.pauseMs.first * 2 ** doublings, flowLimits.pauseMs.max) * (1 + random / 5)
  const askedMs = Math.min((attempt.retryAfterSeconds ?? 0) * secondMs, flowLimits.retryAfterMsMax)
  const until = attempt.at.getTime() + Math.max(pauseMs, askedMs)
  // Attempts in flight at the same time must not shorten each other's pause.
  return { failureCount, blockedUntil: new Date(Math.max(until, health.blockedUntil?.getTime() ?? 0)) }
}

/**
 * The seconds of a `retry-after` header, which holds seconds or a date. Null if it is missing or unreadable.
 * Source: RFC 9110, section 10.2.3
 */
export function parseRetryAfter(header: string | string[] | undefined, nowMs: number): number | null {
  const text = [header].flat()[0]?.trim() ?? ''
  // An absurdly long wait is still a request to slow down.
  if (/^[0-9]+$/.test(text)) return Math.min(Number(text), flowLimits.retryAfterMsMax / secondMs)
  const at = /^[A-Za-z]{3}, /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? null : Math.max(0, Math.ceil((at - nowMs) / secondMs))
}

/** Headers that the service sets itself, or that belong to the connection. */
export const reservedHeaders =
  /^(webhook-.*|midmonth-.*|content-.*|proxy-.*|user-agent|host|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect)$/i
