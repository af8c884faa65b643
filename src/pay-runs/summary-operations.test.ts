import { afterAll, beforeAll, expect, test } from 'vitest'
import { locatedId } from '../../test/harness/api-response.ts'
import { signIn } from '../../test/harness/console.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { euAccount } from '../../test/harness/samples.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const lineOf = (memberId: string, amount: number, currency = 'GBP') => ({ memberId, money: { amount, currency } })

test('a pay run shows its total, its number of members, its file and its author', async () => {
  const clerk = await signIn(harness, { roles: ['payroll'] })
  const [ann, mia] = [await harness.addMember(), await harness.addMember({ tier: 'Silver EU', account: euAccount })]
  const payDetails = [lineOf(ann, 5_000), lineOf(ann, -1_000), lineOf(mia, 700, 'EUR')]
  const byFile = await clerk.call('POST', '/v1/pay/run', {
    body: { payDetails },
    headers: { 'midmonth-file-name': encodeURIComponent('März 2026, week 2.xlsx') },
  })
  const byServer = await harness.call('POST', '/v1/pay/run', {
    body: { payDetails: [lineOf(ann, 100)] },
    headers: { 'midmonth-file-name': 'ignored.csv' },
  })
  const ids = [locatedId(byFile), locatedId(byServer)]
  const path = `/console/v1/pay-runs?ids=${ids.join('&ids=')}`
  const { body } = await clerk.call('GET', path)
  const summaryOf = (id: string | undefined) => body.payRuns.find((each: { id: string }) => each.id === id)
  const createdAt = harness.clock.now().toISOString()
  expect(summaryOf(ids[0])).toEqual({
    ...{ id: ids[0], createdAt, lineCount: 3, memberCount: 2, fileName: 'März 2026, week 2.xlsx' },
    totals: [
      { amount: 700, currency: 'EUR' },
      { amount: 4_000, currency: 'GBP' },
    ],
    author: { kind: 'user', name: clerk.user.name },
  })
  expect(summaryOf(ids[1])).toMatchObject({ lineCount: 1, fileName: null, author: { kind: 'api_key', name: null } })
  expect((await harness.call('GET', `/v1/pay/runs/${ids[0]}`)).body.totals).toEqual(summaryOf(ids[0]).totals)
  const stranger = await signIn(harness, { roles: ['payroll'], partnerId: harness.other.partner.id })
  expect((await stranger.call('GET', path)).body.payRuns).toEqual([])
})

test('a name that is not a file name is refused, and nothing is added', async () => {
  const clerk = await signIn(harness, { roles: ['payroll'] })
  const body = { payDetails: [lineOf(await harness.addMember(), 100)] }
  const before = (await harness.call('GET', '/v1/pay/runs')).body.total
  for (const name of ['%', '%00', '', 'x'.repeat(201)]) {
    const refused = await clerk.call('POST', '/v1/pay/run', { body, headers: { 'midmonth-file-name': name } })
    expect([refused.status, refused.body.issues[0].code], name).toEqual([400, 'HeaderValidation'])
  }
  expect((await harness.call('GET', '/v1/pay/runs')).body.total).toBe(before)
})

test('a partner’s users see who cancelled a withdrawal, unless it was an operator', async () => {
  const support = await signIn(harness, { roles: ['support'] })
  const operator = await signIn(harness, { isOperator: true })
  const ids: string[] = []
  for (const user of [support, operator]) {
    const memberId = await harness.addMember({ available: 5_000 })
    const id = await harness.withdraw({ memberId, amount: 2_000 })
    ids.push(id)
    expect((await user.call('POST', `/v1/pay/withdrawals/${id}/cancel`)).status).toBe(200)
  }
  const namesFor = async (user: typeof support) => {
    const timelines = await Promise.all(ids.map(id => user.call('GET', `/v1/pay/withdrawals/${id}/timeline`)))
    return timelines.map(({ body }) => body.steps.at(-1).actor.name)
  }
  expect(await namesFor(support)).toEqual([support.user.name, null])
  expect(await namesFor(operator)).toEqual([support.user.name, operator.user.name])
})
