import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../../test/harness/harness.ts'
import { goodAccount } from '../../../test/harness/samples.ts'
import { gbp, MemberInsufficientFundsError, Midmonth } from '../src/index.ts'

let harness: Harness
let midmonth: Midmonth
beforeAll(async () => {
  harness = await startHarness()
  const baseUrl = await harness.app.listen({ host: '127.0.0.1', port: 0 })
  midmonth = new Midmonth({ apiKey: harness.key, baseUrl })
})
afterAll(() => harness.stop())

test('a partner completes a pay cycle in a sandbox, from an invitation to the settlement', async () => {
  const { sandbox, members, withdrawals, payCycles } = midmonth
  await sandbox.seed({ scenario: 'fresh' })
  const [tier] = await midmonth.tiers.list()
  const { memberId } = await members.invite({
    email: 'sam.okafor@example.com',
    firstName: 'Sam',
    lastName: 'Okafor',
    tier: tier?.name ?? '',
    accountDetails: goodAccount,
  })
  await sandbox.members.activate(memberId)
  await sandbox.members.fund(memberId, { amount: gbp('300.00') })

  const quote = { memberId, amount: gbp('199.00') }
  const { withdrawalIntentId, netAmount, fee } = await withdrawals.createIntent(quote)
  const { id } = await withdrawals.complete({ withdrawalIntentId })
  await expect(withdrawals.createIntent(quote)).rejects.toThrow(MemberInsufficientFundsError)
  expect(netAmount.amount + fee.amount).toBe(19_900)

  // The bank is first slow, then pays.
  await sandbox.bank.addFault({ next: 'late' })
  await sandbox.withdrawals.pay(id)
  await sandbox.clock.move({ by: 'PT1H' })
  expect((await withdrawals.get(id)).status).toBe('paid')

  const { payCycle } = await members.getBalance(memberId)
  const { status, lastMove } = await sandbox.clock.move({ next: 'cycle_close' })
  expect(status).toBe('Still')
  expect(lastMove?.ran.length).toBeGreaterThan(0)
  const deductions = []
  for await (const deduction of payCycles.listDeductions(payCycle.id)) deductions.push(deduction)
  expect(deductions).toEqual([{ memberId, total: gbp('199.00') }])
  const settlement = await payCycles.settle(payCycle.id, { deductions: [{ memberId, taken: gbp('199.00') }] })
  expect(settlement).toMatchObject({ matched: 1, short: 0, over: 0 })
})
