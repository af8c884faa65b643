import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../harness/harness.ts'
import { deliveryOf, startReceiver, verify } from '../servers/receiver.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

test('an endpoint that is down for six days is disabled, and replaying the failed deliveries delivers every event', async () => {
  const { clock } = harness
  const succeed = async (method: string, path: string, body?: unknown) => {
    const answer = await harness.call(method, path, body === undefined ? {} : { body })
    expect(answer.status, answer.text).toBeLessThan(300)
    return answer.body
  }
  const receiver = await startReceiver()
  const delivery = deliveryOf(harness)
  const { id, secret } = await succeed('POST', '/v1/webhooks', { url: receiver.url })
  const path = `/v1/webhooks/${id}`
  await harness.addMember()
  await delivery.deliverDue()
  expect(await succeed('GET', path)).toMatchObject({ status: 'active' })
  const { lastEventId } = await succeed('GET', '/v1/events?from=now')
  const downSince = clock.now().toISOString()

  receiver.answerWith(503)
  const statuses: string[] = []
  for (let hour = 0; hour < 6 * 24; hour++) {
    clock.advance({ minutes: 60 })
    if (hour % 8 === 0) await harness.addMember()
    await delivery.deliverDue()
    const { status } = await succeed('GET', path)
    if (statuses.at(-1) !== status) statuses.push(status)
  }
  expect(statuses).toEqual(['failing', 'disabled'])
  expect(await succeed('GET', path)).toMatchObject({ enabled: false, disabledReason: 'failing' })
  const { deliveries: skipped } = await succeed('GET', `${path}/deliveries?states=skipped&take=1000`)
  const { deliveries: failed } = await succeed('GET', `${path}/deliveries?states=failed&take=1000`)
  const { deliveries: pending } = await succeed('GET', `${path}/deliveries?states=pending`)
  expect([skipped.length > 0, failed.length > 0, pending]).toEqual([true, true, []])

  receiver.answerWith(204)
  receiver.received.length = 0
  const replayed = await succeed('POST', `${path}/replay`, { failedSince: downSince })
  await delivery.deliverDue()
  const { events } = await succeed('GET', `/v1/events?take=1000&after=${lastEventId}`)
  expect(replayed).toMatchObject({ count: events.length, hasMore: false })
  const bodies = receiver.received.map(request => verify(secret, request))
  expect(bodies.map(({ id }) => id).sort()).toEqual(events.map((event: { id: string }) => event.id).sort())
  expect(await succeed('GET', `${path}/deliveries?states=failed&states=skipped&states=pending`)).toMatchObject({
    deliveries: [],
  })
  // Replays do not count towards the endpoint's health.
  expect(await succeed('GET', path)).toMatchObject({ status: 'disabled' })

  await succeed('PATCH', path, { enabled: true })
  await harness.addMember()
  await delivery.deliverDue()
  expect(await succeed('GET', path)).toMatchObject({ status: 'active', failingSince: null })
  const { events: health } = await succeed('GET', '/v1/events?types=webhook.disabled&types=webhook.recovered')
  expect(health.map(({ type, data }: { type: string; data: object }) => [type, data])).toEqual([
    ['webhook.disabled', { webhookId: id, reason: 'failing' }],
    ['webhook.recovered', { webhookId: id }],
  ])
  await delivery.stop()
  await receiver.stop()
})
