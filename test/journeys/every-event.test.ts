import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { closingTasks } from '../../src/closing/tasks.ts'
import { eventTypes } from '../../src/events/catalogue.ts'
import * as float from '../../src/float/float.ts'
import { memberImportTasks } from '../../src/member-imports/tasks.ts'
import { payRunTasks } from '../../src/pay-runs/tasks.ts'
import { withdrawalTasks } from '../../src/withdrawals/tasks.ts'
import * as withdrawals from '../../src/withdrawals/withdrawals.ts'
import type { Tasks } from '../../src/worker/task.ts'
import { locatedId } from '../harness/api-response.ts'
import { type Harness, startHarness } from '../harness/harness.ts'
import { scopeOfTests } from '../harness/lanes.ts'
import { goodAccount } from '../harness/samples.ts'
import { claimingAt } from '../payouts/claims.ts'
import { deliveryOf, startReceiver } from '../servers/receiver.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const gbp = (amount: number) => ({ amount, currency: 'GBP' })

test('every event type is emitted in its declared shape, with amounts as Money', async () => {
  const { clock, db } = harness
  const { key, partner, payCycle } = await harness.addPartner('Acme', { graceMinutes: 10, autoActivate: false })
  const partnerId = partner.id
  const call = async (method: string, path: string, options = {}) => {
    const answer = await harness.call(method, path, { key, ...options })
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`)
    return answer
  }
  const work = async () => {
    const tasks: Partial<Tasks> = { ...payRunTasks, ...closingTasks, ...withdrawalTasks, ...memberImportTasks }
    const run = { db, now: clock.now, log: pino({ level: 'silent' }), scope: scopeOfTests(partnerId) }
    for (const task of Object.values(tasks)) await task(run)
  }
  const { lastEventId: start } = (await call('GET', '/v1/events?from=now')).body

  const newMember = { email: 'sam@example.com', firstName: 'Sam', lastName: 'Okafor', tier: 'Bronze' }
  const body = { ...newMember, accountDetails: goodAccount }
  const { memberId } = (await call('POST', '/v1/members', { body })).body
  await call('POST', `/v1/members/${memberId}/activate`)
  await call('PATCH', `/v1/members/${memberId}`, { body: { firstName: 'Samuel', gender: 'Male' } })
  await call('DELETE', `/v1/members/${memberId}`)
  await call('PUT', `/v1/members/${memberId}`, { body })
  await call('POST', `/v1/members/${memberId}/activate`)

  const pay = () => call('POST', '/v1/pay/run', { body: { payDetails: [{ memberId, money: gbp(90_000) }] } })
  await pay()
  await call('POST', `/v1/pay/runs/${locatedId(await pay())}/revert`)
  clock.advance({ minutes: 10 })
  await work()

  const quote = (amount = 5_000) => harness.createIntent({ key, memberId, amount })
  const withdraw = () => harness.withdraw({ key, memberId })
  await call('DELETE', `/v1/pay/withdrawals/intent/${await quote()}`)
  await call('POST', `/v1/pay/withdrawals/${await withdraw()}/cancel`)
  const [failed, returned] = [await withdraw(), await withdraw()]
  await quote()
  await db.transaction().execute(async tx => {
    const now = clock.now()
    await float.setFloor(tx, { partnerId, currency: 'GBP', floor: 1_000n, now })
    await float.fund(tx, { partnerId, amount: { amount: 20_000n, currency: 'GBP' }, now })
  })
  clock.advance({ minutes: 20 })
  await work()
  await db.transaction().execute(async tx => {
    const now = clock.now()
    await withdrawals.submitDue(tx, claimingAt(now, partnerId))
    const report = (withdrawalId: string, outcome: 'failed' | 'paid' | 'returned') =>
      withdrawals.applyBankReport(tx, { partnerId, withdrawalId, outcome, reason: 'AC04', now })
    await report(failed, 'failed')
    await report(returned, 'paid')
    await report(returned, 'returned')
  })

  const file = 'email,first_name,last_name,phone,tier\r\nben@example.com,Ben,Okafor,,Bronze\r\n'
  const upload = async (raw: string) =>
    (await call('PUT', '/v2/members/jobs/csv', { raw, headers: { 'content-type': 'text/csv' } })).body.jobId as string
  const refused = await upload(file)
  await call('POST', `/v1/members/jobs/${refused}/reject`)
  const approved = await upload(file)
  // This import is queued behind the one in review.
  const added = { type: 'Add', email: 'cleo@example.com', firstName: 'Cleo', lastName: 'Okafor', tier: 'Bronze' }
  expect((await call('POST', '/v1/members/jobs', { body: { actions: [added] } })).status).toBe(202)
  await call('POST', `/v1/members/jobs/${approved}/approve`)
  await work()

  await upload(file)
  clock.set(new Date('2026-04-02T09:00:00Z'))
  await work()
  await call('POST', `/v1/pay/cycles/${payCycle.id}/settlement`, { body: { deductions: [] } })

  const receiver = await startReceiver()
  const delivery = deliveryOf(harness)
  const { id: webhookId } = (await call('POST', '/v1/webhooks', { body: { url: receiver.url, types: ['member.*'] } }))
    .body
  receiver.answerWith(410)
  await call('PUT', `/v1/members/${memberId}`, { body })
  await delivery.deliverDue()
  await call('PATCH', `/v1/webhooks/${webhookId}`, { body: { enabled: true } })
  receiver.answerWith(200)
  await call('DELETE', `/v1/members/${memberId}`)
  await delivery.deliverDue()
  await delivery.stop()
  await receiver.stop()

  // The harness checks every response against openapi.json, so each event has exactly one of the declared shapes.
  const { events, hasMore } = (await call('GET', `/v1/events?take=1000${start === null ? '' : `&after=${start}`}`)).body
  expect(hasMore).toBe(false)
  expect(new Set(events.map((event: { type: string }) => event.type))).toEqual(new Set(eventTypes))
  const dataOf = (type: string) => events.find((event: { type: string }) => event.type === type).data
  const quoted = { amount: gbp(5_000), fee: gbp(100), netAmount: gbp(4_900) }
  expect(dataOf('intent.expired')).toMatchObject({ memberId, ...quoted })
  expect(dataOf('withdrawal.failed')).toMatchObject({ withdrawalId: failed, ...quoted, reason: 'AC04' })
  expect(dataOf('float.low')).toEqual({ free: gbp(-9_800), floor: gbp(1_000) })
  expect(dataOf('webhook.disabled')).toEqual({ webhookId, reason: 'gone' })
  expect(dataOf('member.updated')).toEqual({ memberId, status: 'active', changed: ['firstName', 'gender'] })
})
