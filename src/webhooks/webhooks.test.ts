import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ApiResponse } from '../../test/harness/api-response.ts'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { scopeOfTests } from '../../test/harness/lanes.ts'
import { whenWaiting } from '../../test/harness/waiting.ts'
import { deliveryOf, type Receiver, startReceiver, verify } from '../../test/servers/receiver.ts'
import { sql } from '../database/database.ts'
import { catalogue, type EventType, eventTypes } from '../events/catalogue.ts'
import * as events from '../events/events.ts'
import { ajv } from '../kernel/json-schema.ts'
import { keptSince } from '../kernel/retention.ts'
import { claim, record } from './attempts.ts'
import { removeOld } from './deliveries.ts'
import type { Delivery } from './delivery.ts'
import { retryWaitsMs } from './rules.ts'

let harness: Harness
let mine: TestPartner
let receiver: Receiver
let delivery: Delivery
const opened: { stop(): Promise<unknown> }[] = []
const open = <T extends { stop(): Promise<unknown> }>(one: T): T => {
  opened.push(one)
  return one
}
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())
beforeEach(async () => {
  mine = await harness.addPartner('Acme')
  receiver = open(await startReceiver())
  delivery = open(deliveryOf(harness))
})
afterEach(async () => {
  // Endpoints of other tests must not keep the worker busy.
  await sql`delete from webhook_secrets`.execute(harness.db)
  await sql`update webhook_endpoints set due_at = null, leased_until = null, deleted_at = now()`.execute(harness.db)
  for (const one of opened.splice(0).reverse()) await one.stop()
})

const call = (method: string, path: string, body?: unknown, options = {}) =>
  harness.call(method, path, { key: mine.key, ...(body === undefined ? {} : { body }), ...options })
const succeed = async (...request: Parameters<typeof call>) => {
  const answer = await call(...request)
  expect(answer.status, answer.text).toBeLessThan(300)
  return answer.body
}
const createEndpoint = (settings = {}) => succeed('POST', '/v1/webhooks', { url: receiver.url, ...settings })
const codes = ({ status, body }: ApiResponse) => [status, body.issues[0].code, body.issues[0].path]

/** Emits events, each of a resource that no other event has. */
async function emit(count = 1, type: 'job.completed' | 'job.rejected' = 'job.completed'): Promise<string[]> {
  const names = Array.from({ length: count }, (_, index) => `maj_${index}_${Math.random()}`)
  const { partner } = mine
  const now = harness.clock.now()
  const all = names.map((jobId): events.NewEvent => {
    const common = { partnerId: partner.id, resourceId: jobId, sequence: 1, now }
    return { ...common, type, data: { jobId, status: 'Completed' } }
  })
  await harness.inTx(tx => events.emitSql(all).execute(tx))
  const { rows } = await sql<{ id: string }>`
    select id from events where partner_id = ${mine.partner.id} and resource_id = any(${names}::text[]) order by id`.execute(
    harness.db,
  )
  return rows.map(({ id }) => id)
}
const deliveriesOf = async (id: string, query = '') =>
  (await succeed('GET', `/v1/webhooks/${id}/deliveries${query}`)).deliveries
const receivedIds = () => receiver.received.map(({ headers }) => headers['webhook-id'])

describe('a delivery', () => {
  test('is signed, has the event of the feed as its body, and is recorded with the response', async () => {
    const { id, secret } = await createEndpoint({ types: ['member.*'], headers: { authorization: 'Bearer 1' } })
    const memberId = await harness.addMember({ key: mine.key })
    await delivery.deliverDue()
    const feed = (await succeed('GET', '/v1/events?types=member.invited&types=member.activated')).events
    expect(receiver.received).toHaveLength(feed.length)
    for (const [index, request] of receiver.received.entries()) {
      const { createdAt, ...event } = feed[index]
      expect(verify(secret, request)).toEqual(event)
      expect(event.data.memberId).toBe(memberId)
      expect(request.headers).toMatchObject({
        ...{ 'webhook-id': event.id, 'content-type': 'application/json', authorization: 'Bearer 1' },
      })
      expect(request.body).not.toMatch(/Sam|Okafor|66374958|089999|@/)
      expect(await succeed('GET', `/v1/webhooks/${id}/deliveries/${event.id}`)).toMatchObject({
        ...{ id: event.id, state: 'delivered', attemptCount: 1, lastStatus: 200, nextAttemptAt: null },
        attempts: [{ number: 1, reason: 'schedule', status: 200, error: null, response: 'thanks' }],
      })
    }
  })

  test('is made for the types of the endpoint only, and for events that happen after its creation', async () => {
    await emit()
    const chosen = await createEndpoint({ types: ['job.completed'] })
    const group = await createEndpoint({ types: ['job.*', 'float.low'] })
    const other = await createEndpoint({ types: ['member.*'] })
    const all = await createEndpoint()
    const [completed] = await emit()
    const [rejected] = await emit(1, 'job.rejected')
    await delivery.deliverDue()
    const ids = async ({ id }: { id: string }) => (await deliveriesOf(id)).map((each: { id: string }) => each.id).sort()
    expect(await ids(chosen)).toEqual([completed])
    expect(await ids(group)).toEqual([completed, rejected].sort())
    expect(await ids(all)).toEqual([completed, rejected].sort())
    expect(await ids(other)).toEqual([])
  })

  test('is retried by the schedule with the same id, and has failed after the last attempt', async () => {
    const { id, secret } = await createEndpoint()
    receiver.answerWith(500, {}, 'x'.repeat(20_000))
    const [event = ''] = await emit()
    await delivery.deliverDue()
    const read = () => succeed('GET', `/v1/webhooks/${id}/deliveries/${event}`)
    for (const waitMs of retryWaitsMs) {
      const { state, nextAttemptAt, lastAttemptAt } = await read()
      expect(state).toBe('pending')
      const plannedMs = Date.parse(nextAttemptAt) - Date.parse(lastAttemptAt)
      expect(plannedMs / waitMs).toBeGreaterThanOrEqual(1)
      expect(plannedMs / waitMs).toBeLessThanOrEqual(1.2)
      // An endpoint that fails often gets pauses, which are longer than the first wait.
      harness.clock.advance({ seconds: plannedMs / 1_000 - 1 })
      const before = receiver.received.length
      if (waitMs > 600_000) {
        await delivery.deliverDue()
        expect(receiver.received).toHaveLength(before)
      }
      harness.clock.advance({ minutes: waitMs > 600_000 ? 1 / 60 : 6 })
      await delivery.deliverDue()
      expect(receiver.received).toHaveLength(before + 1)
    }
    const { attempts, ...failed } = await read()
    expect(failed).toMatchObject({ state: 'failed', attemptCount: 10, lastStatus: 500, nextAttemptAt: null })
    expect(attempts).toHaveLength(10)
    expect(attempts[0]).toMatchObject({ status: 500, error: 'status', response: 'x'.repeat(16_384) })
    expect(new Set(receivedIds())).toEqual(new Set([event]))
    for (const request of receiver.received) verify(secret, request)
  })

  test.each([
    ['a redirect is not followed', 302, 'redirect', { location: '/elsewhere' }],
    ['304', 304, 'redirect', {}],
    ['401', 401, 'status', {}],
    ['503', 503, 'status', {}],
  ])('fails if the response is not 2XX: %s', async (_, status, error, headers) => {
    const { id } = await createEndpoint()
    receiver.answerWith(status, headers as Record<string, string>)
    const [event] = await emit()
    await delivery.deliverDue()
    const { attempts } = await succeed('GET', `/v1/webhooks/${id}/deliveries/${event}`)
    expect(attempts).toMatchObject([{ status, error }])
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook'])
    expect(await succeed('GET', `/v1/webhooks/${id}`)).toMatchObject({ status: 'failing', enabled: true })
  })

  test('fails and is retried if the connection breaks, is refused, or the name cannot be resolved', async () => {
    receiver.answerBy(response => response.destroy())
    const broken = await createEndpoint()
    const refused = await createEndpoint({ url: 'http://127.0.0.1:1081/' })
    const unknown = await createEndpoint({ url: 'http://no-such-host.invalid/' })
    const [event] = await emit()
    await delivery.deliverDue()
    for (const [{ id }, error] of [
      [broken, 'connection'],
      [refused, 'connection'],
      [unknown, 'dns'],
    ] as const) {
      const found = await succeed('GET', `/v1/webhooks/${id}/deliveries/${event}`)
      expect(found).toMatchObject({ state: 'pending', attempts: [{ status: null, error, response: null }] })
    }
  })

  test('of each type is small, and a test sends a sample that matches its declared shape', async () => {
    const { id, secret } = await createEndpoint({ enabled: false })
    const document = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'))
    expect(Object.keys(document.webhooks)).toEqual(eventTypes)
    const tests = new Map<string, string>()
    for (const type of eventTypes) {
      const { id: test, ...created } = await succeed('POST', `/v1/webhooks/${id}/test`, { type })
      expect(created).toMatchObject({ type, state: 'pending', isTest: true })
      tests.set(type, test)
    }
    await delivery.deliverDue()
    for (const [type, test] of tests) {
      const request = receiver.received.find(({ headers }) => headers['webhook-id'] === test)
      if (request === undefined) throw new Error('Nothing was received')
      expect(request.headers).toMatchObject({ 'midmonth-test': 'true' })
      const event = verify(secret, request)
      expect(event).toEqual({ id: test, type, timestamp: expect.any(String), sequence: 1, data: expect.anything() })
      expect(ajv.validate(catalogue[type as EventType].data, event.data), type).toBe(true)
      expect(request.body.length).toBeLessThan(20_000)
      expect(await succeed('GET', `/v1/webhooks/${id}/deliveries/${test}`)).toMatchObject({
        ...{ state: 'delivered', attempts: [{ reason: 'test', status: 200 }] },
      })
    }
    expect(await succeed('GET', `/v1/webhooks/${id}`)).toMatchObject({ status: 'disabled', enabled: false })
  })
})

describe('a rotation', () => {
  test('signs with both secrets until the previous one expires, and with the new one only from then on', async () => {
    const { id, secret: old } = await createEndpoint()
    const rotated = await succeed('POST', `/v1/webhooks/${id}/rotate`, {})
    expect(rotated.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    const inOneDay = new Date(harness.clock.now().getTime() + 86_400_000).toISOString()
    expect(rotated).toMatchObject({ id, previousExpiresAt: inOneDay })
    await emit()
    await delivery.deliverDue()
    const [during] = receiver.received
    if (during === undefined) throw new Error('Nothing was received')
    verify(old, during)
    verify(rotated.secret, during)
    harness.clock.advance({ days: 1 })
    await emit()
    await delivery.deliverDue()
    const after = receiver.received[1]
    if (after === undefined) throw new Error('Nothing was received')
    verify(rotated.secret, after)
    expect(() => verify(old, after)).toThrow('No matching signature')
  })

  test('needs no body: the previous secret then stays valid for a day', async () => {
    const { id } = await createEndpoint()
    const { previousExpiresAt } = await succeed('POST', `/v1/webhooks/${id}/rotate`)
    expect(previousExpiresAt).toBe(new Date(harness.clock.now().getTime() + 86_400_000).toISOString())
  })

  test('with no overlap ends the previous secret at once; too many valid secrets are refused', async () => {
    const { id, secret: leaked } = await createEndpoint()
    const { secret } = await succeed('POST', `/v1/webhooks/${id}/rotate`, { overlapSeconds: 0 })
    await emit()
    await delivery.deliverDue()
    const [request] = receiver.received
    if (request === undefined) throw new Error('Nothing was received')
    verify(secret, request)
    expect(() => verify(leaked, request)).toThrow('No matching signature')
    for (let count = 1; count < 5; count++) await succeed('POST', `/v1/webhooks/${id}/rotate`, {})
    expect((await call('POST', `/v1/webhooks/${id}/rotate`, {})).status).toBe(409)
  })
})

describe('a replay', () => {
  test('of one event sends it again with the same id, even to a disabled endpoint, without counting for its health', async () => {
    const { id } = await createEndpoint({ types: ['member.invited'] })
    const [event = ''] = await emit()
    await succeed('PATCH', `/v1/webhooks/${id}`, { enabled: false })
    receiver.answerWith(500)
    expect(await succeed('POST', `/v1/webhooks/${id}/replay`, { eventId: event })).toEqual({
      ...{ count: 1, lastEventId: event, hasMore: false },
    })
    await delivery.deliverDue()
    const path = `/v1/webhooks/${id}/deliveries/${event}`
    expect(await succeed('GET', path)).toMatchObject({ state: 'failed', attempts: [{ reason: 'replay', status: 500 }] })
    receiver.answerWith(200)
    await succeed('POST', `/v1/webhooks/${id}/replay`, { eventId: event })
    await delivery.deliverDue()
    expect(await succeed('GET', path)).toMatchObject({ state: 'delivered', attemptCount: 2 })
    // A failed replay does not undo a delivery.
    receiver.answerWith(500)
    await succeed('POST', `/v1/webhooks/${id}/replay`, { eventId: event })
    await delivery.deliverDue()
    expect(await succeed('GET', path)).toMatchObject({ state: 'delivered', attemptCount: 3 })
    expect(receivedIds()).toEqual([event, event, event])
    expect(await succeed('GET', `/v1/webhooks/${id}`)).toMatchObject({
      ...{ status: 'disabled', disabledReason: 'requested', failingSince: null },
    })
  })

  test('of a time range sends the events that the endpoint takes, even from before its creation', async () => {
    const start = harness.clock.now()
    const [first] = await emit()
    harness.clock.advance({ minutes: 1 })
    const [second] = await emit()
    await emit(1, 'job.rejected')
    harness.clock.advance({ minutes: 1 })
    const { id } = await createEndpoint({ types: ['job.completed'] })
    const [third] = await emit()
    await delivery.deliverDue()
    const replay = (body: object) => succeed('POST', `/v1/webhooks/${id}/replay`, body)
    const since = start.toISOString()
    const until = harness.clock.now().toISOString()
    expect(await replay({ since, until })).toEqual({ count: 2, lastEventId: second, hasMore: false })
    await delivery.deliverDue()
    expect(receivedIds()).toEqual([third, first, second])
    expect(await replay({ since, after: first })).toMatchObject({ count: 2, lastEventId: third })
    await delivery.deliverDue()
    expect(receivedIds()).toEqual([third, first, second, second, third])
  })

  test('of more than 10,000 events continues where it stopped, and reaches every event once', {
    timeout: 120_000,
  }, async () => {
    const { id } = await createEndpoint({ types: ['job.*'], enabled: false })
    const since = harness.clock.now().toISOString()
    const count = 10_500
    await emit(count)
    await delivery.deliverDue()
    for (const start of [{ failedSince: since }, { since }]) {
      const counts: number[] = []
      let page = { lastEventId: null as string | null, hasMore: true }
      while (page.hasMore) {
        const after = page.lastEventId === null ? {} : { after: page.lastEventId }
        const replayed = await succeed('POST', `/v1/webhooks/${id}/replay`, { ...start, ...after })
        counts.push(replayed.count)
        page = replayed
      }
      expect(counts).toEqual([10_000, 500])
    }
    const { rows } = await sql<{ count: number }>`
      select count(*)::integer as count from webhook_deliveries
       where endpoint_id = ${id} and replay_at is not null and state = 'pending'`.execute(harness.db)
    expect(rows[0]?.count).toBe(count)
    // Tests that follow delete deliveries in small steps.
    await succeed('DELETE', `/v1/webhooks/${id}`)
    while ((await removeOld(harness.db, oldAt({ days: 30, countMax: 5_000 }))) > 0);
  })

  test('of failures sends each failed or skipped event once, and no event that was delivered', async () => {
    const since = harness.clock.now().toISOString()
    const { id } = await createEndpoint()
    await emit()
    await delivery.deliverDue()
    await succeed('PATCH', `/v1/webhooks/${id}`, { enabled: false })
    const skipped = await emit(3)
    await delivery.deliverDue()
    expect(await deliveriesOf(id, '?states=skipped')).toHaveLength(3)
    await succeed('POST', `/v1/webhooks/${id}/test`, { type: 'float.low' })
    const replay = () => succeed('POST', `/v1/webhooks/${id}/replay`, { failedSince: since })
    expect(await replay()).toMatchObject({ count: 3 })
    // They are pending now.
    expect(await replay()).toMatchObject({ count: 0, lastEventId: null })
    await delivery.deliverDue()
    expect(receivedIds().slice(1).sort()).toEqual(expect.arrayContaining(skipped))
    expect(await replay()).toMatchObject({ count: 0 })
    expect(await deliveriesOf(id, '?states=skipped&states=failed')).toEqual([])
  })

  test('of an unknown event, or one that has left the feed, is not found', async () => {
    const { id } = await createEndpoint()
    const [event] = await emit()
    await delivery.deliverDue()
    const replay = (eventId: unknown) => call('POST', `/v1/webhooks/${id}/replay`, { eventId })
    expect((await replay('evt_unknown')).status).toBe(404)
    harness.clock.advance({ days: 31 })
    expect((await replay(event)).status).toBe(404)
    expect((await call('POST', `/v1/webhooks/${id}/replay`, {})).status).toBe(400)
  })
})

describe('an endpoint', () => {
  test('that answers 410 is disabled at once, which is an event; later events are skipped', async () => {
    const { id } = await createEndpoint()
    const watcher = open(await startReceiver())
    await createEndpoint({ url: watcher.url, types: ['webhook.*'] })
    receiver.answerWith(410)
    const [event] = await emit()
    await delivery.deliverDue()
    expect(await succeed('GET', `/v1/webhooks/${id}`)).toMatchObject({
      ...{ status: 'disabled', enabled: false, disabledReason: 'gone' },
    })
    expect(watcher.bodies()).toMatchObject([{ type: 'webhook.disabled', data: { webhookId: id, reason: 'gone' } }])
    expect(await deliveriesOf(id, '?states=failed')).toMatchObject([{ id: event }])
    const [later] = await emit()
    await delivery.deliverDue()
    const states = (await deliveriesOf(id, '?states=skipped')).map((each: { id: string }) => each.id)
    expect(states).toContain(later)

    receiver.answerWith(200)
    await succeed('PATCH', `/v1/webhooks/${id}`, { enabled: true })
    await emit(2)
    await delivery.deliverDue()
    expect(await succeed('GET', `/v1/webhooks/${id}`)).toMatchObject({ status: 'active', disabledReason: null })
    expect(watcher.bodies().map(({ type }) => type)).toEqual(['webhook.disabled', 'webhook.recovered'])
  })

  test('that asks for a pause gets only requested attempts until it ends', async () => {
    const { id } = await createEndpoint()
    receiver.answerWith(429, { 'retry-after': '600' })
    const [first] = await emit()
    await delivery.deliverDue()
    receiver.answerWith(200)
    await emit()
    harness.clock.advance({ minutes: 9 })
    await delivery.deliverDue()
    expect(receiver.received).toHaveLength(1)
    harness.clock.advance({ minutes: 1 })
    await delivery.deliverDue()
    expect(receiver.received).toHaveLength(3)
    expect(await succeed('GET', `/v1/webhooks/${id}/deliveries/${first}`)).toMatchObject({ state: 'delivered' })
  })

  test('that asks for a pause shows its end as the time of the next attempt, which is made then', async () => {
    const { id } = await createEndpoint()
    receiver.answerWith(503, { 'retry-after': '600' })
    const [event] = await emit()
    await delivery.deliverDue()
    const until = new Date(harness.clock.now().getTime() + 600_000).toISOString()
    const next = async () => (await succeed('GET', `/v1/webhooks/${id}/deliveries/${event}`)).nextAttemptAt
    expect(await next()).toBe(until)
    expect((await deliveriesOf(id))[0].nextAttemptAt).toBe(until)
    harness.clock.advance({ seconds: 599 })
    await delivery.deliverDue()
    expect(receiver.received).toHaveLength(1)
    harness.clock.set(new Date(until))
    await delivery.deliverDue()
    expect(receiver.received).toHaveLength(2)
    // A requested attempt ends the pause.
    await succeed('POST', `/v1/webhooks/${id}/replay`, { eventId: event })
    expect(await next()).toBe(until)
  })

  test('that is disabled shows a next attempt only for replays, which are also delayed by a pause that it asks for', async () => {
    const { id } = await createEndpoint()
    receiver.answerWith(500)
    const [first] = await emit()
    await delivery.deliverDue()
    await succeed('PATCH', `/v1/webhooks/${id}`, { enabled: false })
    const next = async () => (await succeed('GET', `/v1/webhooks/${id}/deliveries/${first}`)).nextAttemptAt
    expect(await next()).toBeNull()
    const since = new Date(harness.clock.now().getTime() - 1_000).toISOString()
    await emit(20)
    await delivery.deliverDue()
    receiver.answerWith(429, { 'retry-after': '600' })
    const before = receiver.received.length
    expect(await succeed('POST', `/v1/webhooks/${id}/replay`, { failedSince: since })).toMatchObject({ count: 21 })
    expect(await next()).toBe(harness.clock.now().toISOString())
    await delivery.deliverDue()
    // As many requests as are in flight when the first response arrives.
    expect(receiver.received.length - before).toBeLessThanOrEqual(4)
    harness.clock.advance({ minutes: 10 })
    receiver.answerWith(200)
    await delivery.deliverDue()
    expect(new Set(receivedIds())).toHaveProperty('size', 21)
    expect(await deliveriesOf(id, '?states=pending&states=skipped')).toEqual([])
  })

  test('that is deleted while a request is in flight gets no further request, and its response disables nothing', async () => {
    const watcher = open(await startReceiver())
    await createEndpoint({ url: watcher.url, types: ['webhook.*'] })
    const { id } = await createEndpoint({ types: ['job.*'] })
    receiver.answerBy(async response => {
      await succeed('DELETE', `/v1/webhooks/${id}`)
      response.writeHead(410).end()
    })
    await emit()
    await delivery.deliverDue()
    await emit()
    await delivery.deliverDue()
    expect(receiver.received).toHaveLength(1)
    expect(watcher.received).toEqual([])
  })

  test('that fails three times in a row gets one request at a time, however long its backlog', async () => {
    await createEndpoint()
    receiver.answerWith(500)
    await emit(50)
    await delivery.deliverDue()
    // Four in flight before the third failure is known.
    expect(receiver.received.length).toBeLessThanOrEqual(6)
    const before = receiver.received.length
    harness.clock.advance({ seconds: 60 })
    await delivery.deliverDue()
    expect(receiver.received).toHaveLength(before + 1)
    receiver.answerWith(200)
    harness.clock.advance({ minutes: 6 })
    await delivery.deliverDue()
    expect(new Set(receivedIds())).toHaveProperty('size', 50)
  })

  test('has at most four requests in flight, also with two workers, and each event is delivered once', async () => {
    const second = open(deliveryOf(harness))
    await createEndpoint()
    receiver.answerBy(response => setImmediate(() => setImmediate(() => response.end())))
    const ids = await emit(300)
    delivery.start()
    second.start()
    ids.push(...(await emit(300)))
    await expect.poll(() => receiver.received.length, { timeout: 20_000 }).toBe(600)
    expect(receiver.open.most).toBeLessThanOrEqual(4)
    expect(new Set(receivedIds())).toEqual(new Set(ids))
  })

  test('that never responds does not delay another one', async () => {
    const silent = open(await startReceiver())
    silent.answerBy(() => undefined)
    for (let count = 0; count < 10; count++) await createEndpoint({ url: silent.url })
    await createEndpoint()
    const ids = await emit(20)
    delivery.start()
    await expect.poll(() => receiver.received.length, { timeout: 10_000 }).toBe(20)
    expect(receivedIds().sort()).toEqual(ids)
    expect(silent.open.most).toBeGreaterThan(0)
  })

  test('of a killed worker is taken over when its lease expires', async () => {
    await createEndpoint()
    await emit()
    let realMs = Date.now()
    const realNow = () => new Date(realMs)
    const other = open(deliveryOf(harness, { realNow }))
    const options = {
      countMax: 10,
      busy: new Map(),
      now: harness.clock.now(),
      realNow: realNow(),
      leaseMs: 30_000,
      hasClocks: true,
    }
    // The fan-out has run, and a process has claimed the endpoint and died.
    await sql`update webhook_endpoints set due_at = ${harness.clock.now()} where deleted_at is null`.execute(harness.db)
    expect(await claim(harness.db, options)).toHaveLength(1)
    await other.deliverDue()
    expect(receiver.received).toEqual([])
    realMs += 30_000
    await other.deliverDue()
    expect(receiver.received).toHaveLength(1)
  })

  test('that is healthy is locked while an attempt is recorded, so that a replay and the record take turns', async () => {
    const { id } = await createEndpoint()
    const [eventId = ''] = await emit()
    await delivery.deliverDue()
    const { db, clock } = harness
    const made = {
      ...{ partnerId: mine.partner.id, endpointId: id, eventId, reason: 'replay' as const, scheduledCount: 1 },
      ...{
        at: clock.now(),
        durationMs: 1,
        status: 200,
        error: null,
        response: '',
        retryAfterSeconds: null,
        affectsHealth: false,
      },
    }
    const attemptCount = async () => (await deliveriesOf(id))[0].attemptCount
    let recorded: Promise<unknown> = Promise.resolve()
    await db.transaction().execute(async tx => {
      await sql`select from webhook_endpoints where partner_id = ${mine.partner.id} and id = ${id} for no key update`.execute(
        tx,
      )
      recorded = db.transaction().execute(inner => record(inner, [made]))
      await whenWaiting(db)
      expect(await attemptCount()).toBe(1)
    })
    await recorded
    expect(await attemptCount()).toBe(2)
  })

  test('is one of at most 16, and its settings are shown, changed and deleted', async () => {
    const { id, secret, ...created } = await createEndpoint({ description: 'Payroll', types: ['pay_run.*'] })
    expect(created).toEqual({
      ...{ url: receiver.url, description: 'Payroll', types: ['pay_run.*'], enabled: true, headers: {} },
      ...{
        metadata: {},
        status: 'active',
        disabledReason: null,
        failingSince: null,
        createdAt: harness.clock.now().toISOString(),
      },
    })
    expect(secret).toMatch(/^whsec_/)
    expect(await succeed('GET', `/v1/webhooks/${id}`)).toEqual({ id, ...created })
    const changes = { description: null, types: ['*'], headers: { 'x-tenant': 'a' }, url: 'https://example.com/' }
    expect(await succeed('PATCH', `/v1/webhooks/${id}`, changes)).toEqual({ id, ...created, ...changes })
    for (let count = 1; count < 16; count++) await createEndpoint()
    expect((await call('POST', '/v1/webhooks', { url: receiver.url })).status).toBe(409)
    expect(await succeed('GET', '/v1/webhooks?take=2')).toMatchObject({ total: 16, take: 2, webhooks: [{}, {}] })
    await succeed('DELETE', `/v1/webhooks/${id}`)
    for (const [method, path, body] of operationsOn(id))
      expect((await call(method, path, body)).status, `${method} ${path}`).toBe(404)
    await createEndpoint()
  })

  test('of another partner is not found, and gets no events of this partner', async () => {
    const { id } = await createEndpoint()
    for (const [method, path, body] of operationsOn(id)) {
      const [foreign, unknown] = [id, 'we_unknown'].map(webhookId =>
        harness.call(method, path.replace(id, webhookId), { key: harness.other.key, ...(body ? { body } : {}) }),
      )
      expect((await foreign)?.text, `${method} ${path}`).toBe((await unknown)?.text)
      expect((await foreign)?.status).toBe(404)
    }
    await harness.addMember({ key: harness.other.key })
    await delivery.deliverDue()
    expect(receiver.received).toEqual([])
  })

  test('is created once with an idempotency key, and the response with its secret is repeated', async () => {
    const options = { headers: { 'x-idempotency-key': 'once' } }
    const first = await call('POST', '/v1/webhooks', { url: receiver.url }, options)
    const again = await call('POST', '/v1/webhooks', { url: receiver.url }, options)
    expect(again.text).toBe(first.text)
    expect((await succeed('GET', '/v1/webhooks')).total).toBe(1)
  })

  test('can be created while events are replayed to another one', async () => {
    const { id } = await createEndpoint()
    await emit(50)
    const since = new Date(harness.clock.now().getTime() - 60_000).toISOString()
    const both = Array.from({ length: 10 }, () => [
      call('POST', '/v1/webhooks', { url: receiver.url }),
      call('POST', `/v1/webhooks/${id}/replay`, { since }),
    ])
    const answers = await Promise.all(both.flat())
    const statuses = answers.map(({ status }) => status)
    expect(statuses).toEqual(Array.from({ length: 10 }, () => [201, 202]).flat())
  })

  test.each([
    ['http://10.0.0.1/', 'url'],
    ['ftp://example.com/', 'url'],
    ['https://user:pass@example.com/', 'url'],
    ['https://example.com/#part', 'url'],
    ['https://example.com:22/', 'url'],
    ['not a url', 'url'],
  ])('cannot have the URL %s', async (url, path) => {
    expect(codes(await call('POST', '/v1/webhooks', { url }))).toEqual([400, 'BodyValidation', path])
  })

  test('cannot have a header of the service, a type that does not exist, or too many headers', async () => {
    const create = async (settings: object) =>
      codes(await call('POST', '/v1/webhooks', { url: receiver.url, ...settings }))
    expect(await create({ headers: { 'Webhook-Id': '1' } })).toEqual([400, 'BodyValidation', 'headers.Webhook-Id'])
    expect(await create({ headers: { 'x-a': 'a\r\nb: c' } })).toEqual([400, 'BodyValidation', 'headers.x-a'])
    expect(await create({ types: ['nothing.*'] })).toEqual([400, 'BodyValidation', 'types.0'])
    expect(await create({ types: [] })).toEqual([400, 'BodyValidation', 'types'])
  })
})

test('retries and replays follow the clock of the partner, on a sandbox where it can be moved', async () => {
  const { id } = await createEndpoint()
  receiver.answerWith(500)
  const [event] = await emit()
  await delivery.deliverDue()
  await succeed('POST', '/v1/sandbox/clock', { by: 'P1D' })
  receiver.answerWith(200)
  await delivery.deliverDue()
  expect(receivedIds()).toEqual([event, event])
  await succeed('POST', `/v1/webhooks/${id}/replay`, { eventId: event })
  await delivery.deliverDue()
  expect(receivedIds()).toEqual([event, event, event])
})

test('a reset, which sets the clock back, ends the pause of an endpoint and forgets its failures', async () => {
  const { id } = await createEndpoint()
  await succeed('POST', '/v1/sandbox/clock', { by: 'P300D' })
  await delivery.deliverDue()
  receiver.answerWith(503, { 'retry-after': '86400' })
  await harness.addMember({ key: mine.key })
  await delivery.deliverDue()
  expect(await succeed('GET', `/v1/webhooks/${id}`)).toMatchObject({ status: 'failing' })
  await succeed('POST', '/v1/sandbox/reset')
  expect(await succeed('GET', `/v1/webhooks/${id}`)).toMatchObject({ status: 'active', failingSince: null })
  receiver.answerWith(200)
  receiver.received.length = 0
  const memberId = await harness.addMember({ key: mine.key })
  await delivery.deliverDue()
  expect(receiver.bodies().map(({ type, data }) => [type, data.memberId])).toContainEqual(['member.invited', memberId])
})

test('a live installation delivers without reading the clocks of sandboxes', async () => {
  await createEndpoint()
  const [event] = await emit()
  const live = open(deliveryOf({ ...harness, mode: 'live' }))
  await harness.ownerDb.transaction().execute(async tx => {
    // A statement that reads the table now waits until it fails.
    await sql`lock table sandbox_clocks in access exclusive mode`.execute(tx)
    await live.deliverDue()
  })
  expect(receivedIds()).toEqual([event])
})

describe('the list of deliveries', () => {
  test('is filtered by state, type and event, newest first, in pages', async () => {
    const { id } = await createEndpoint()
    const completed = await emit(5)
    const rejected = await emit(2, 'job.rejected')
    await delivery.deliverDue()
    const newest = [...completed, ...rejected].sort().reverse()
    const ids = async (query: string) => (await deliveriesOf(id, query)).map((each: { id: string }) => each.id)
    expect(await ids('')).toEqual(newest)
    expect(await ids('?states=delivered')).toEqual(newest)
    expect(await ids('?states=failed&states=pending')).toEqual([])
    expect(await ids('?types=job.rejected&types=float.low')).toEqual([...rejected].sort().reverse())
    expect(await ids('?states=delivered&types=job.rejected')).toEqual([...rejected].sort().reverse())
    expect(await ids(`?eventId=${completed[0]}`)).toEqual([completed[0]])
    expect(await ids('?skip=2&take=3')).toEqual(newest.slice(2, 5))
    expect(await succeed('GET', `/v1/webhooks/${id}/deliveries?take=7`)).toMatchObject({ hasMore: false, take: 7 })
    expect(await succeed('GET', `/v1/webhooks/${id}/deliveries?take=6`)).toMatchObject({ hasMore: true, take: 6 })
  })

  test('keeps deliveries for 30 days, or until their endpoint is deleted', async () => {
    const kept = await createEndpoint()
    const deleted = await createEndpoint()
    await emit(3)
    await delivery.deliverDue()
    await succeed('DELETE', `/v1/webhooks/${deleted.id}`)
    const countOf = async (table: string, id: string) => {
      const { rows } = await sql<{ count: bigint }>`
        select count(*) from ${sql.table(table)} where endpoint_id = ${id}`.execute(harness.db)
      return Number(rows[0]?.count)
    }
    const forgetAll = async () => {
      while ((await removeOld(harness.db, oldAt({ days: 30, countMax: 2 }))) > 0);
    }
    await forgetAll()
    expect(await countOf('webhook_deliveries', deleted.id)).toBe(0)
    expect(await countOf('webhook_attempts', deleted.id)).toBe(0)
    expect(await countOf('webhook_attempts', kept.id)).toBe(3)
    harness.clock.advance({ days: 31 })
    await forgetAll()
    expect(await deliveriesOf(kept.id)).toEqual([])
    expect(await countOf('webhook_attempts', kept.id)).toBe(0)
  })
})

const operationsOn = (id: string): [string, string, object?][] => [
  ['GET', `/v1/webhooks/${id}`],
  ['PATCH', `/v1/webhooks/${id}`, { enabled: true }],
  ['POST', `/v1/webhooks/${id}/rotate`, {}],
  ['POST', `/v1/webhooks/${id}/test`, { type: 'float.low' }],
  ['POST', `/v1/webhooks/${id}/replay`, { failedSince: '2026-03-01T00:00:00Z' }],
  ['GET', `/v1/webhooks/${id}/deliveries`],
  ['GET', `/v1/webhooks/${id}/deliveries/evt_unknown`],
  ['DELETE', `/v1/webhooks/${id}`],
]

function oldAt({ days, countMax }: { days: number; countMax: number }) {
  const now = harness.clock.now()
  return { before: keptSince(days, now), countMax, now, scope: scopeOfTests(mine.partner.id) }
}
