import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const move = (body: object, key?: string) =>
  harness.call('POST', '/v1/sandbox/clock', { body, ...(key === undefined ? {} : { key }) })

async function newIntent(key = harness.key): Promise<string> {
  const memberId = await harness.addMember({ available: 50_000, key })
  const body = { memberId, amount: { amount: 5_000, currency: 'GBP' } }
  const created = await harness.call('POST', '/v1/pay/withdrawals/intent', { body, key })
  expect(created.status).toBe(201)
  return created.body.withdrawalIntentId
}

const intentOf = async (id: string, key = harness.key) =>
  (await harness.call('GET', `/v1/pay/withdrawals/intent/${id}`, { key })).body

test('a clock that nobody moved shows real time', async () => {
  const { status, body } = await harness.call('GET', '/v1/sandbox/clock', { key: harness.other.key })
  expect({ status, body }).toEqual({
    status: 200,
    body: { now: harness.clock.now().toISOString(), aheadSeconds: 0, status: 'Still', lastMove: null },
  })
})

describe('moving the clock', () => {
  test('expires an intent, in the partner’s own time, and says so', async () => {
    const { partner, key } = await harness.addPartner('Expiring')
    const id = await newIntent(key)
    const [before] = [harness.clock.now()]
    const { status, body } = await move({ next: 'intent_expiry' }, key)
    const expiresAt = new Date(before.getTime() + partner.intentMinutes * 60_000).toISOString()
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        now: expiresAt,
        aheadSeconds: partner.intentMinutes * 60,
        status: 'Still',
        lastMove: {
          from: before.toISOString(),
          to: expiresAt,
          ran: [{ due: 'intent_expiry', from: expiresAt, to: expiresAt, count: 1 }],
        },
      },
    })
    expect(await intentOf(id, key)).toMatchObject({ status: 'expired' })
    const { body: feed } = await harness.call('GET', '/v1/events?types=intent.expired', { key })
    expect(feed.events).toMatchObject([{ timestamp: expiresAt, data: { withdrawalIntentId: id } }])
  })
})
