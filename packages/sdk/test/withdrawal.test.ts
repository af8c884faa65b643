import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { gbp, id, Midmonth } from '../src/index.ts'

let harness: Harness
let midmonth: Midmonth
beforeAll(async () => {
  harness = await startHarness()
  const baseUrl = await harness.app.listen({ host: '127.0.0.1', port: 0 })
  midmonth = new Midmonth({ apiKey: harness.key, baseUrl })
})
afterAll(() => harness.stop())

test('a withdrawal is created from an intent, completed and read', async () => {
  const memberId = id('mem', await harness.addMember({ available: 50_000 }))
  const { available } = await midmonth.members.getBalance(memberId)
  expect(available).toEqual(gbp('500.00'))

  const intent = await midmonth.withdrawals.createIntent({ memberId, amount: gbp('50.00') })
  // The fuller representation, which the SDK always requests.
  expect(intent).toMatchObject({ status: 'pending', netAmount: gbp('49.50') })
  const completed = await midmonth.withdrawals.complete({ withdrawalIntentId: intent.withdrawalIntentId })
  const withdrawal = await midmonth.withdrawals.get(completed.id)
  expect(withdrawal).toMatchObject({ status: 'held', memberId, amount: gbp('50.00') })
})
