import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { ApiResponse } from '../../test/harness/api-response.ts'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { closeIfOver } from '../closing/closing.ts'
import { sql } from '../database/database.ts'
import * as float from '../float/float.ts'
import { overviewTasks } from './tasks.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())
beforeEach(() => harness.clock.set(new Date('2026-03-10T09:00:00.000Z')))

const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const problemOf = ({ status, body }: ApiResponse) => [status, body.issues[0].code, body.issues[0].path]
const nothing = {
  ...{ withdrawals: 0, amount: gbp(0), fees: gbp(0), employerFees: gbp(0) },
  ...{ givenBack: 0, givenBackAmount: gbp(0) },
}

const overview = async ({ key }: TestPartner) => {
  const { status, body, text } = await harness.call('GET', '/v1/overview', { key })
  expect(status, text).toBe(200)
  const currency = body.currencies.find((each: { currency: string }) => each.currency === 'GBP')
  return { ...body, ...currency }
}
const series = async ({ key }: TestPartner, query: string) =>
  await harness.call('GET', `/v1/overview/series?currency=GBP&${query}`, { key })

test('a sum beyond what a JSON number holds exactly is shown as the largest such number', async () => {
  const mine = await harness.addPartner('Large')
  const available = Number.MAX_SAFE_INTEGER
  for (let count = 0; count < 2; count += 1) await harness.addMember({ key: mine.key, available })
  expect((await overview(mine)).available).toEqual(gbp(available))
})

test('the overview shows a withdrawal immediately: available, withdrawn, fees, in flight and float', async () => {
  const mine = await harness.addPartner('Overview')
  const { key, partner } = mine
  const fund = {
    partnerId: partner.id,
    amount: { amount: 100_000n, currency: 'GBP' } as const,
    now: harness.clock.now(),
  }
  await harness.inTx(tx => float.fund(tx, fund))
  // Silver: a fee of 50 from the member. Gold: a fee of 50 from the employer.
  const silver = await harness.addMember({ key, available: 20_000 })
  const gold = await harness.addMember({ key, available: 9_000, tier: 'Gold' })
  await harness.withdraw({ key: mine.key, memberId: silver, amount: 5_000 })
  await harness.withdraw({ key: mine.key, memberId: gold, amount: 2_000 })
  const cancelled = await harness.withdraw({ key: mine.key, memberId: silver, amount: 3_000 })
  await harness.call('POST', `/v1/pay/withdrawals/${cancelled}/cancel`, { key })
  const found = await overview(mine)
  const totals = {
    withdrawals: 3,
    amount: gbp(10_000),
    fees: gbp(100),
    employerFees: gbp(50),
    givenBack: 1,
    givenBackAmount: gbp(3_000),
  }
  expect(found).toMatchObject({
    isComplete: true,
    members: { active: 2, invited: 0, inactive: 0 },
    openCycle: { id: mine.payCycle.id, startDate: '2026-03-01', endDate: '2026-03-31', daysLeft: 22 },
    available: gbp(22_000),
    today: totals,
    cycle: totals,
    inFlight: { withdrawals: 2, netAmount: gbp(6_950) },
    float: gbp(100_000),
    free: gbp(93_050),
    needsDecision: { memberJobs: 0, payoutExceptions: 0, failingWebhooks: 0, cyclesToSettle: 0, lowFloats: 0 },
  })
  expect(await overview(mine)).toEqual(found)
})

test('a series by day has every day of the range, with returned money on the day of its return', async () => {
  const mine = await harness.addPartner('By day', { timeZone: 'America/New_York' })
  const memberId = await harness.addMember({ key: mine.key, available: 20_000 })
  // In New York it is still the 9th.
  harness.clock.set(new Date('2026-03-10T03:00:00.000Z'))
  const id = await harness.withdraw({ key: mine.key, memberId, amount: 5_000 })
  harness.clock.set(new Date('2026-03-12T03:00:00.000Z'))
  await harness.inTx(tx => sql`update withdrawals set due_at = '2027-01-01' where id = ${id}`.execute(tx))
  expect((await harness.call('POST', `/v1/pay/withdrawals/${id}/cancel`, { key: mine.key })).status).toBe(200)
  const { body } = await series(mine, 'from=2026-03-08&to=2026-03-11')
  const on = (day: string, totals: object = {}) => ({
    from: day,
    to: day,
    payCycleId: null,
    totals: { ...nothing, ...totals },
  })
  expect(body.points).toEqual([
    on('2026-03-08'),
    on('2026-03-09', { withdrawals: 1, amount: gbp(5_000), fees: gbp(50) }),
    on('2026-03-10'),
    on('2026-03-11', { givenBack: 1, givenBackAmount: gbp(5_000) }),
  ])
  const last = (await series(mine, '')).body.points
  expect([last.length, last.at(-1).from]).toEqual([30, '2026-03-11'])
})

test('a series by cycle has the last cycles, each with the totals of its withdrawals', async () => {
  const mine = await harness.addPartner('By cycle')
  const memberId = await harness.addMember({ key: mine.key, available: 9_000 })
  await harness.withdraw({ key: mine.key, memberId, amount: 5_000 })
  harness.clock.set(new Date('2026-04-02T10:00:00.000Z'))
  await harness.db
    .transaction()
    .execute(tx => closeIfOver(tx, { partnerId: mine.partner.id, now: harness.clock.now() }))
  const { points } = (await series(mine, 'by=cycle')).body
  expect(points).toMatchObject([
    {
      from: '2026-03-01',
      to: '2026-03-31',
      payCycleId: mine.payCycle.id,
      totals: { withdrawals: 1, amount: gbp(5_000) },
    },
    { from: '2026-04-01', to: '2026-04-30', totals: nothing },
  ])
  expect((await series(mine, 'by=cycle&cycles=1')).body.points).toEqual(points.slice(1))
  expect((await overview(mine)).needsDecision).toMatchObject({ cyclesToSettle: 1 })
})

test('the worker and concurrent requests add up each event once', async () => {
  const mine = await harness.addPartner('Once')
  const memberId = await harness.addMember({ key: mine.key, available: 20_000 })
  for (let count = 0; count < 3; count += 1) await harness.withdraw({ key: mine.key, memberId, amount: 1_000 })
  const context = { db: harness.db, log: harness.app.log, now: harness.clock.now } as never
  const addUp = () => overviewTasks['add-up-withdrawals'](context)
  await Promise.all([overview(mine), addUp(), overview(mine), addUp(), overview(mine)])
  expect((await overview(mine)).today).toMatchObject({ withdrawals: 3, amount: gbp(3_000) })
})

test('a reset empties the totals', async () => {
  const mine = await harness.addPartner('Reset')
  const memberId = await harness.addMember({ key: mine.key, available: 20_000 })
  await harness.withdraw({ key: mine.key, memberId, amount: 1_000 })
  expect((await overview(mine)).today.withdrawals).toBe(1)
  expect((await harness.call('POST', '/v1/sandbox/reset', { key: mine.key })).status).toBe(200)
  expect(await overview(mine)).toMatchObject({ today: nothing, cycle: nothing, available: gbp(0) })
  const next = await harness.addMember({ key: mine.key, available: 20_000 })
  await harness.withdraw({ key: mine.key, memberId: next, amount: 2_000 })
  expect((await overview(mine)).today).toMatchObject({ withdrawals: 1, amount: gbp(2_000) })
})

test('pending decisions are counted', async () => {
  const mine = await harness.addPartner('Decisions', { offboardReviewPercent: 0 })
  const { key, partner } = mine
  await harness.addMember({ key })
  const raw = 'email,first_name,last_name,phone,tier\r\n'
  await harness.call('PUT', '/v1/members/jobs/csv', { key, raw, headers: { 'content-type': 'text/csv' } })
  const floor = { partnerId: partner.id, currency: 'GBP', floor: 1_000n, now: harness.clock.now() } as const
  await harness.inTx(tx => float.setFloor(tx, floor))
  await harness.call('POST', '/v1/webhooks', { key, body: { url: 'https://example.com/hook' } })
  await sql`update webhook_endpoints set failing_since = now() where partner_id = ${partner.id}`.execute(harness.db)
  expect((await overview(mine)).needsDecision).toEqual({
    ...{ memberJobs: 1, payoutExceptions: 0, failingWebhooks: 1, cyclesToSettle: 0, lowFloats: 1 },
  })
})

test('another partner’s withdrawals are not counted, and an impossible range is refused', async () => {
  const mine = await harness.addPartner('Mine')
  const other = await harness.addPartner('Theirs')
  await harness.withdraw({
    key: other.key,
    memberId: await harness.addMember({ key: other.key, available: 20_000 }),
    amount: 1_000,
  })
  expect((await overview(mine)).today).toEqual(nothing)
  expect(problemOf(await series(mine, 'from=2026-03-02&to=2026-03-01'))).toEqual([400, 'QueryValidation', 'from'])
  expect(problemOf(await series(mine, 'from=2024-03-02&to=2026-03-01'))).toEqual([400, 'QueryValidation', 'from'])
  expect(problemOf(await series(mine, 'cycles=3'))).toEqual([400, 'QueryValidation', 'cycles'])
  expect((await harness.call('GET', '/v1/overview/series', { key: mine.key })).body.currency).toBe('EUR')
  expect(problemOf(await series(mine, 'from=2026-02-30'))).toEqual([400, 'QueryValidation', 'from'])
})
