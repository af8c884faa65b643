import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../harness/harness.ts'
import { goodAccount } from '../harness/samples.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

test('a member with earned pay sees the balance, gets a quote and withdraws', async () => {
  const { call, clock, payCycle } = harness
  const invited = await call('POST', '/v1/members', {
    body: {
      email: 'sam@example.com',
      firstName: 'Sam',
      lastName: 'Okafor',
      tier: 'Bronze',
      accountDetails: goodAccount,
    },
  })
  expect(invited.status).toBe(201)
  const { memberId } = invited.body

  const payRun = await call('POST', '/v1/pay/run', {
    body: { payDetails: [{ memberId, money: { amount: 12_000, currency: 'GBP' } }] },
  })
  const id = expect.stringMatching(/^pr_/)
  expect(payRun.body).toEqual({ id, payCycleId: payCycle.id, status: 'Available' })
  expect((await call('GET', payRun.headers.location ?? '')).body).toMatchObject({
    ...payRun.body,
    scheduledFor: clock.now().toISOString(),
  })

  const before = await call('GET', `/v1/pay/members/${memberId}/balance`)
  expect(before.body).toEqual({
    available: { amount: 12_000, currency: 'GBP' },
    lowerLimit: { amount: 1_000, currency: 'GBP' },
    upperLimit: { amount: 20_000, currency: 'GBP' },
    payCycle: {
      id: payCycle.id,
      startDate: '2026-03-01',
      endDate: '2026-03-31',
      lastPayDate: '2026-03-10T09:00:00.000Z',
    },
    isTemporarilyUnavailable: false,
  })

  const intent = await call('POST', '/v1/pay/withdrawals/intent', {
    body: { memberId, amount: { amount: 5_000, currency: 'GBP' } },
  })
  expect(intent.status).toBe(201)
  expect(intent.body).toEqual({
    withdrawalIntentId: expect.stringMatching(/^wi_/),
    netAmount: { amount: 4_900, currency: 'GBP' },
    fee: { amount: 100, currency: 'GBP' },
    accountDetails: goodAccount,
    bankAccount: { lastFour: '4958' },
  })
  expect(intent.headers['x-intent-expires-at']).toBe('2026-03-10T09:15:00.000Z')

  const { withdrawalIntentId } = intent.body
  const completed = await call('POST', '/v1/pay/withdrawals/complete', { body: { withdrawalIntentId } })
  expect(completed.status).toBe(201)
  const withdrawal = await call('GET', completed.headers.location ?? '')
  expect(withdrawal.body).toMatchObject({ memberId, status: 'held', netAmount: { amount: 4_900, currency: 'GBP' } })

  const after = await call('GET', `/v1/pay/members/${memberId}/balance`)
  expect(after.body.available).toEqual({ amount: 7_000, currency: 'GBP' })
  const listed = await call('GET', `/v1/pay/members/${memberId}/withdrawals`)
  expect(listed.body).toEqual({
    withdrawals: [
      {
        amount: { amount: 5_000, currency: 'GBP' },
        fee: { amount: 100, currency: 'GBP' },
        payCycleId: payCycle.id,
        createdAt: '2026-03-10T09:00:00.000Z',
      },
    ],
    skip: 0,
    take: 50,
    total: 1,
  })
})
