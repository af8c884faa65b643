import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type Attempted,
  applyAttempt,
  flowLimits,
  type Health,
  healthy,
  nextAttemptAt,
  parseRetryAfter,
  reservedHeaders,
  retryWaitsMs,
} from './rules.ts'

const start = new Date('2026-03-10T09:00:00Z')
const later = ({ days = 0, hours = 0 }) => new Date(start.getTime() + days * 86_400_000 + hours * 3_600_000)
const fresh: Health = { ...healthy, enabled: true, disabledReason: null, isRecovering: false }
const attempt = (at: Date, more: Partial<Attempted> = {}): Attempted => ({
  ...{ isSuccess: false, status: 500, retryAfterSeconds: null, reason: 'schedule', at, ...more },
})
const after = (attempts: Attempted[], health = fresh) =>
  attempts.reduce<ReturnType<typeof applyAttempt>>((state, each) => applyAttempt(state.health, each, 0), {
    ...{ health, event: null },
  })

test('a retry is due after the wait of the schedule and at most a fifth later; after nine retries there is none', () => {
  const random = fc.double({ min: 0, max: 1, noNaN: true })
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 20 }),
      random,
      fc.date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true }),
      (failures, random, now) => {
        const at = nextAttemptAt({ failures, now, random })
        const waitMs = retryWaitsMs[failures - 1]
        if (waitMs === undefined) {
          expect(at).toBeNull()
          return
        }
        expect((at?.getTime() ?? 0) - now.getTime()).toBeGreaterThanOrEqual(waitMs)
        expect((at?.getTime() ?? 0) - now.getTime()).toBeLessThanOrEqual(waitMs * 1.2)
      },
    ),
  )
  const hours = retryWaitsMs.reduce((sum, ms) => sum + ms, 0) / 3_600_000
  expect([retryWaitsMs.length, Math.floor(hours)]).toEqual([9, 75])
})

test('an endpoint is disabled when it failed for five days, with failures on at least three of them', () => {
  const daily = [0, 1, 2, 3, 4].map(days => attempt(later({ days })))
  expect(after(daily)).toMatchObject({ event: null, health: { enabled: true, failingSince: start, failingDays: 5 } })
  expect(after([...daily, attempt(later({ days: 5, hours: -1 }))]).event).toBeNull()
  expect(after([...daily, attempt(later({ days: 5 }))])).toMatchObject({
    ...{ event: 'webhook.disabled', health: { enabled: false, disabledReason: 'failing', isRecovering: true } },
  })
  // Failures on the first and the last day only.
  expect(after([attempt(start), attempt(later({ days: 5 }))]).event).toBeNull()
})

test('one success within the five days restarts the count', () => {
  const success = attempt(later({ days: 4 }), { isSuccess: true, status: 200 })
  const attempts = [0, 1, 2, 3].map(days => attempt(later({ days })))
  const state = after([...attempts, success, attempt(later({ days: 6 }))])
  expect(state).toMatchObject({ event: null, health: { enabled: true, failingDays: 1 } })
})

test('410 disables at once, and the first success after enabling is a recovery; replays and tests change no health', () => {
  const { health } = after([attempt(start, { status: 410 })])
  expect(health).toMatchObject({ enabled: false, disabledReason: 'gone' })
  const success = attempt(later({ days: 1 }), { isSuccess: true, status: 200 })
  const enabled = { ...health, ...healthy, enabled: true, disabledReason: null }
  for (const reason of ['replay', 'test'] as const) {
    expect(after([{ ...success, reason }], enabled)).toMatchObject({ event: null, health: { isRecovering: true } })
    const failures = Array.from({ length: 9 }, (_, days) => attempt(later({ days }), { reason, status: 410 }))
    expect(after(failures).health).toMatchObject({ enabled: true, failingSince: null, failingDays: 0 })
  }
  expect(after([success], enabled)).toMatchObject({ event: 'webhook.recovered', health: { isRecovering: false } })
})

test('pauses double from the third failure in a row up to a limit, and retry-after is honoured up to a day', () => {
  const pauseMs = (failures: number, last: Partial<Attempted> = {}) => {
    const attempts = Array.from({ length: failures }, (_, index) => attempt(start, index === failures - 1 ? last : {}))
    const { blockedUntil } = after(attempts).health
    return blockedUntil === null ? null : blockedUntil.getTime() - start.getTime()
  }
  expect([1, 2, 3, 4, 5].map(failures => pauseMs(failures))).toEqual([null, null, 5_000, 10_000, 20_000])
  expect(pauseMs(50)).toBe(flowLimits.pauseMs.max)
  for (const status of [429, 502, 504]) expect(pauseMs(1, { status })).toBe(5_000)
  expect(pauseMs(1, { retryAfterSeconds: 90 })).toBe(90_000)
  expect(pauseMs(1, { retryAfterSeconds: 1_000_000 })).toBe(86_400_000)
  expect(after([attempt(start, { status: 429 }), attempt(start, { isSuccess: true })]).health.blockedUntil).toBeNull()
})

test('retry-after is read as seconds or as a date', () => {
  const nowMs = Date.parse('2026-03-10T09:00:00Z')
  expect(parseRetryAfter('120', nowMs)).toBe(120)
  expect(parseRetryAfter('Tue, 10 Mar 2026 09:01:00 GMT', nowMs)).toBe(60)
  expect(parseRetryAfter('Tue, 10 Mar 2026 08:00:00 GMT', nowMs)).toBe(0)
  // A number of any length asks for at most the longest wait.
  for (const huge of ['99999999999', '9'.repeat(400)]) expect(parseRetryAfter(huge, nowMs)).toBe(86_400)
  for (const odd of [undefined, '', '-1', '1.5', 'soon', 'Tue, soon'])
    expect(parseRetryAfter(odd, nowMs), odd).toBeNull()
})

test('headers of the service and of the connection cannot be chosen', () => {
  for (const name of ['Webhook-Id', 'content-length', 'Host', 'transfer-encoding', 'midmonth-test', 'user-agent'])
    expect(reservedHeaders.test(name), name).toBe(true)
  for (const name of ['authorization', 'x-hostname', 'x-webhook-id'])
    expect(reservedHeaders.test(name), name).toBe(false)
})
