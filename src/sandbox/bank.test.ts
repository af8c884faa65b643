import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, locatedId, startHarness } from '../../test/harness.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const post = (path: string, body?: object, key = harness.key) =>
  harness.call('POST', path, { key, ...(body === undefined ? {} : { body }) })

async function newWithdrawal(key = harness.key): Promise<{ memberId: string; id: string }> {
  const memberId = await harness.addMember({ available: 50_000, key })
  const intent = await post('/v1/pay/withdrawals/intent', { memberId, amount: gbp(5_050) }, key)
  const { withdrawalIntentId } = intent.body
  const completed = await post('/v1/pay/withdrawals/complete', { withdrawalIntentId }, key)
  return { memberId, id: locatedId(completed) }
}
const availableOf = async (memberId: string) =>
  (await harness.call('GET', `/v1/pay/members/${memberId}/balance`)).body.available.amount

describe('a withdrawal goes through each transition when the bank is told to', () => {
  test.each([
    ['submit', 'submitted', ['held', 'submitted'], null],
    ['pay', 'paid', ['held', 'submitted', 'paid'], null],
    ['fail', 'failed', ['held', 'submitted', 'failed'], 'AC06 The account is blocked'],
    ['return', 'returned', ['held', 'submitted', 'paid', 'returned'], 'AC06 The account is blocked'],
  ])('%s leads to %s, through the states before it', async (name, status, states, reason) => {
    const { id, memberId } = await newWithdrawal()
    const answer = await post(`/v1/sandbox/withdrawals/${id}/${name}`, { reason: 'AC06' })
    expect(answer).toMatchObject({ status: 200, body: { id, status } })
    expect(answer.body.timeline.map((entry: { status: string }) => entry.status)).toEqual(states)
    expect(answer.body.timeline.at(-1).reason).toBe(reason)
    expect(await availableOf(memberId)).toBe(['failed', 'returned'].includes(status) ? 50_000 : 44_950)
    expect((await post(`/v1/sandbox/withdrawals/${id}/${name}`)).body.status).toBe(status)
  })

  test('step by step: submitted, paid, returned', async () => {
    const { id } = await newWithdrawal()
    for (const [name, status] of [
      ['submit', 'submitted'],
      ['pay', 'paid'],
      ['return', 'returned'],
    ]) {
      expect((await post(`/v1/sandbox/withdrawals/${id}/${name}`)).body.status).toBe(status)
    }
  })

  test('hold keeps the bank silent after the hold, however long it takes, until it is told to pay', async () => {
    const { key } = await harness.addPartner('Silent bank')
    const { id } = await newWithdrawal(key)
    expect((await post(`/v1/sandbox/withdrawals/${id}/hold`, undefined, key)).body.status).toBe('held')
    const moved = await post('/v1/sandbox/clock', { by: 'P2D' }, key)
    expect(moved.status).toBe(200)
    const held = await harness.call('GET', `/v1/pay/withdrawals/${id}`, { key })
    expect(held.body.status).toBe('submitted')
    expect((await post(`/v1/sandbox/withdrawals/${id}/pay`, undefined, key)).body.status).toBe('paid')
  })
})

test('a state that the withdrawal can no longer reach is a conflict, and another partner’s withdrawal is not found', async () => {
  const { id } = await newWithdrawal()
  await post(`/v1/sandbox/withdrawals/${id}/fail`)
  for (const name of ['submit', 'pay', 'return', 'hold']) {
    const answer = await post(`/v1/sandbox/withdrawals/${id}/${name}`)
    expect([answer.status, answer.body.issues?.[0].code]).toEqual([409, 'Conflict'])
  }
  const others = await post(`/v1/sandbox/withdrawals/${id}/pay`, undefined, harness.other.key)
  expect([others.status, others.body.issues[0].code]).toEqual([404, 'NotFound'])
})

describe('the next payments meet the faults that were asked for', () => {
  test.each([
    ['timeout', ['paid']],
    ['error', ['paid']],
    ['duplicate', ['paid']],
    ['late', ['paid']],
    ['contradiction', ['paid']],
    ['unknown_reference', ['paid']],
  ])('%s: one payment meets it, and still ends as %s', async (next, [end]) => {
    const { key, partner } = await harness.addPartner(`Fault ${next}`)
    const asked = await post('/v1/sandbox/bank/faults', { next }, key)
    expect(asked).toMatchObject({ status: 201, body: { faults: [{ fault: next, remaining: 1 }] } })
    const { id } = await newWithdrawal(key)
    const moved = await post('/v1/sandbox/clock', { by: 'PT1H' }, key)
    expect(moved.status).toBe(200)
    expect((await harness.call('GET', `/v1/pay/withdrawals/${id}`, { key })).body.status).toBe(end)
    const left = await harness.db
      .selectFrom('simulatedBankFaults')
      .select('remaining')
      .where('partnerId', '=', partner.id)
      .execute()
    expect(left).toEqual([{ remaining: 0 }])
  })
})

test('a member is funded by a pay run, the float by a movement, and a pause refuses intents', async () => {
  const { key } = await harness.addPartner('Money')
  const memberId = await harness.addMember({ key })
  const funded = await post(`/v1/sandbox/members/${memberId}/fund`, { amount: gbp(7_500) }, key)
  expect(funded).toMatchObject({ status: 201, body: { status: 'Available', available: gbp(7_500) } })
  const run = await harness.call('GET', `/v1/pay/runs/${funded.body.payRunId}`, { key })
  expect(run.body).toMatchObject({ status: 'Available', lineCount: 1, totals: [gbp(7_500)] })
  const float = await post('/v1/sandbox/float', { amount: gbp(100_000) }, key)
  expect(float).toMatchObject({ status: 201, body: { float: gbp(100_000), free: gbp(100_000) } })
  const refused = await post('/v1/sandbox/float', { amount: { amount: 1, currency: 'JPY' } }, key)
  expect([refused.status, refused.body.issues[0].code]).toEqual([422, 'UnprocessableEntity'])
  expect((await post('/v1/sandbox/pause', undefined, key)).body).toEqual({ paused: true })
  const intent = { memberId, amount: gbp(5_000) }
  expect((await post('/v1/pay/withdrawals/intent', intent, key)).status).toBe(422)
  expect((await post('/v1/sandbox/resume', undefined, key)).body).toEqual({ paused: false })
  expect((await post('/v1/pay/withdrawals/intent', intent, key)).status).toBe(201)
})

test('a live installation knows none of this', async () => {
  const live = await startHarness({ mode: 'live' })
  try {
    for (const [method, path] of [
      ['GET', '/v1/sandbox/clock'],
      ['POST', '/v1/sandbox/clock'],
      ['POST', '/v1/sandbox/bank/faults'],
      ['POST', '/v1/sandbox/pause'],
    ] as const) {
      expect((await live.call(method, path)).status).toBe(404)
    }
  } finally {
    await live.stop()
  }
})
