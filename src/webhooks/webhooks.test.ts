import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness.ts'
import { deliveryOf, type Receiver, startReceiver, verify } from '../../test/receiver.ts'
import type { Delivery } from './delivery.ts'

let harness: Harness
let mine: TestPartner
let receiver: Receiver
let delivery: Delivery
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())
beforeEach(async () => {
  mine = await harness.addPartner('Acme')
  receiver = await startReceiver()
  delivery = deliveryOf(harness)
})
afterEach(async () => {
  await delivery.stop()
  await receiver.stop()
})

const call = (method: string, path: string, body?: unknown) =>
  harness.call(method, path, { key: mine.key, ...(body === undefined ? {} : { body }) })

test('an event is delivered, signed, and recorded', async () => {
  const created = await call('POST', '/v1/webhooks', { url: receiver.url, types: ['member.*'] })
  expect(created.status).toBe(201)
  const { id, secret } = created.body
  const memberId = await harness.addMember({ key: mine.key })
  await delivery.deliverDue()

  const feed = (await call('GET', '/v1/events?types=member.invited&types=member.activated')).body.events
  expect(receiver.received).toHaveLength(feed.length)
  for (const [index, request] of receiver.received.entries()) {
    const { createdAt, ...event } = feed[index]
    expect(verify(secret, request)).toEqual(event)
    expect(request.headers).toMatchObject({ 'webhook-id': event.id, 'content-type': 'application/json' })
    expect(event.data.memberId).toBe(memberId)
    const delivered = await call('GET', `/v1/webhooks/${id}/deliveries/${event.id}`)
    expect(delivered.body).toMatchObject({
      ...{ id: event.id, state: 'delivered', attemptCount: 1, nextAttemptAt: null },
      attempts: [{ number: 1, reason: 'schedule', status: 200, error: null, response: 'thanks' }],
    })
  }
})
