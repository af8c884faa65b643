import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../harness/harness.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

test('the scenario ten_thousand_members has ten thousand members, each with pay', { timeout: 120_000 }, async () => {
  const { key } = await harness.addPartner('Many')
  const seeded = await harness.call('POST', '/v1/sandbox/seed', { key, body: { scenario: 'ten_thousand_members' } })
  expect(seeded).toMatchObject({ status: 201, body: { members: 10_000 } })
  const { body } = await harness.call('GET', '/v1/pay/runs', { key })
  const run = await harness.call('GET', `/v1/pay/runs/${body.payRuns[0].id}`, { key })
  const totals = [{ amount: 500_000_000, currency: 'GBP' }]
  expect(run.body).toMatchObject({ status: 'Available', lineCount: 10_000, totals })
})
