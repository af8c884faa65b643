import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ConsoleUser, signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { bronze } from '../../test/harness/samples.ts'
import { pausePartner, resumePartner } from '../partners/partners.ts'

let harness: Harness
let support: ConsoleUser
beforeAll(async () => {
  harness = await startHarness()
  support = await signIn(harness, { roles: ['support'] })
})
afterAll(() => harness.stop())

const ask = async (memberId: string, user = support) => {
  await harness.flushRequestLog()
  return await user.call('GET', `/console/v1/members/${memberId}/support`)
}

test('support sees what has to change before a member can withdraw', async () => {
  const refusalOf = async (memberId: string) => (await ask(memberId)).body.refusal
  const rich = await harness.addMember({ available: 10_000 })
  expect(await refusalOf(rich)).toBeNull()
  expect(await refusalOf(await harness.addMember())).toMatchObject({ cause: 'funds' })
  const without = await harness.call('POST', '/v1/members', {
    body: { email: 'without@example.com', firstName: 'Ann', lastName: 'Without', tier: 'Silver' },
  })
  expect(await refusalOf(without.body.memberId)).toEqual({
    cause: 'account',
    message: 'The member has no bank account; add one to the member first',
  })
  await harness.addTier('Once', { ...bronze, withdrawalsPerDay: 1 })
  const limited = await harness.addMember({ available: 10_000, tier: 'Once' })
  await harness.withdraw({ memberId: limited, amount: 2_000 })
  expect(await refusalOf(limited)).toMatchObject({ cause: 'limit' })
  await harness.call('DELETE', `/v1/members/${limited}`)
  expect(await refusalOf(limited)).toMatchObject({ cause: 'member' })
  await harness.inTx(tx => pausePartner(tx, harness.partner.id))
  expect(await refusalOf(rich)).toMatchObject({ cause: 'partner' })
  await harness.inTx(tx => resumePartner(tx, harness.partner.id))
})

test('refused attempts are listed with their codes, newest first, and other refused requests are not', async () => {
  const memberId = await harness.addMember({ available: 5_000 })
  await harness.requestIntent({ memberId, amount: 100 })
  await harness.requestIntent({ memberId, amount: 6_000 })
  await harness.requestIntent({ memberId, amount: 100_000_000 })
  await harness.call('PATCH', `/v1/members/${memberId}`, { body: { tier: 'None' } })
  const { body } = await ask(memberId)
  expect(body.refused.map(({ errorCodes }: { errorCodes: string[] }) => errorCodes)).toEqual([
    ['AmountAboveUpperLimit'],
    ['MemberInsufficientFunds'],
    ['AmountBelowLowerLimit'],
  ])
})

test('the events of a member include those of their withdrawals, newest first', async () => {
  const memberId = await harness.addMember({ available: 5_000 })
  await harness.withdraw({ memberId, amount: 2_000 })
  const types = (await ask(memberId)).body.events.map(({ type }: { type: string }) => type)
  expect(types).toEqual(['withdrawal.held', 'member.activated', 'member.invited'])
})

test('the events of a member include those of withdrawals whose money came back', async () => {
  const memberId = await harness.addMember({ available: 5_000 })
  const make = () => harness.withdraw({ memberId, amount: 1_000 })
  await harness.call('POST', `/v1/pay/withdrawals/${await make()}/cancel`)
  await harness.call('POST', `/v1/sandbox/withdrawals/${await make()}/fail`)
  await harness.call('POST', `/v1/sandbox/withdrawals/${await make()}/return`)
  const types = (await ask(memberId)).body.events.map(({ type }: { type: string }) => type)
  expect(types).toEqual(expect.arrayContaining(['withdrawal.cancelled', 'withdrawal.failed', 'withdrawal.returned']))
})

test('a user of another partner learns nothing about a member', async () => {
  const memberId = await harness.addMember()
  const stranger = await signIn(harness, { roles: ['viewer'], partnerId: harness.other.partner.id })
  expect((await ask(memberId, stranger)).status).toBe(404)
  expect((await support.call('GET', '/console/v1/members/mem_123/support')).status).toBe(404)
})

test('payroll reinstates a member who was offboarded, with the bank account as it was', async () => {
  const payroll = await signIn(harness, { roles: ['payroll'] })
  const memberId = await harness.addMember({ available: 10_000 })
  const before = (await harness.call('GET', `/v1/members/${memberId}`)).body
  await harness.call('DELETE', `/v1/members/${memberId}`)
  const reinstate = (user: ConsoleUser) => user.call('POST', `/console/v1/members/${memberId}/reinstate`)
  expect((await reinstate(support)).status).toBe(403)
  expect((await reinstate(payroll)).status).toBe(200)
  expect((await reinstate(payroll)).status).toBe(200)
  const { body: after } = await harness.call('GET', `/v1/members/${memberId}`)
  expect(after).toEqual({ ...before, status: after.status })
  expect(after.status).not.toBe('inactive')
  const stranger = await signIn(harness, { roles: ['payroll'], partnerId: harness.other.partner.id })
  expect((await reinstate(stranger)).status).toBe(404)
})

test('only operators release a member who is held for review', async () => {
  const operator = await signIn(harness, { isOperator: true })
  const payroll = await signIn(harness, { roles: ['admin', 'payroll'] })
  const memberId = await harness.addMember({ available: 10_000 })
  await harness.db.updateTable('members').set({ reviewReason: 'MD07' }).where('id', '=', memberId).execute()
  expect((await ask(memberId)).body.refusal).toMatchObject({ cause: 'review' })
  const release = (user: ConsoleUser) =>
    user.call('POST', `/operator/v1/members/${memberId}/release`, { body: { reason: 'the bank confirmed it' } })
  expect((await release(payroll)).status).toBe(403)
  expect((await ask(memberId)).body.refusal).toMatchObject({ cause: 'review' })
  for (const released of [true, false])
    expect(await release(operator)).toMatchObject({ status: 200, body: { id: memberId, released } })
  expect((await ask(memberId)).body.refusal).toBeNull()
  const { body } = await operator.call('GET', `/operator/v1/audit-log?resourceId=${memberId}&actions=member.release`)
  expect(body.entries).toMatchObject([
    { partnerId: harness.partner.id, details: { before: { reviewReason: 'MD07' }, reason: 'the bank confirmed it' } },
  ])
})
