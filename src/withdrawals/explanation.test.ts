import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { bronze } from '../../test/harness/samples.ts'
import type { TierTerms } from '../tiers/terms.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const path = '/v1/pay/withdrawals/intent'
const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const explain = (id: string, options = {}) => harness.call('GET', `${path}/${id}/explanation`, options)

async function intentWith(terms: TierTerms, amount: number) {
  const tier = `Tier ${JSON.stringify(Object.values(terms), (_, each) => (typeof each === 'bigint' ? String(each) : each))}`
  await harness.addTier(tier.slice(0, 60), terms)
  const memberId = await harness.addMember({ available: 20_000, tier: tier.slice(0, 60) })
  const { status, body } = await harness.call('POST', path, { body: { memberId, amount: gbp(amount) } })
  expect(status).toBe(201)
  return { memberId, tier: tier.slice(0, 60), id: body.withdrawalIntentId }
}

const given = (body: { rules: { rule: string; amount: { amount: number } }[] }) =>
  Object.fromEntries(body.rules.map(({ rule, amount }) => [rule, amount.amount]))

test('an explanation has the inputs, the tier version, each rule in order with its result, and the outcome', async () => {
  const { memberId, id, tier } = await intentWith(bronze, 5_099)
  const { status, body } = await explain(id)
  expect(status).toBe(200)
  expect(body).toMatchObject({
    withdrawalIntentId: id,
    inputs: { memberId, payCycleId: harness.payCycle.id, amount: gbp(5_099) },
    tier: {
      name: tier,
      version: 1,
      feeFixed: gbp(50),
      feeBps: 100,
      feeMin: gbp(50),
      feeMax: gbp(300),
      feePayer: 'member',
    },
    result: { fee: gbp(100), employerFee: gbp(0), netAmount: gbp(4_999) },
  })
  expect(
    body.rules.map(({ rule, amount }: { rule: string; amount: { amount: number } }) => [rule, amount.amount]),
  ).toEqual([
    ['lower limit', 1_000],
    ['upper limit', 20_000],
    ['fixed part', 50],
    ['percentage part', 50],
    ['minimum fee', 100],
    ['maximum fee', 100],
    ['fee payer', 100],
    ['net', 4_999],
  ])
})

test('it shows where a minimum or maximum applied, and who pays', async () => {
  const low = await intentWith({ ...bronze, feeFixed: 0n, feeMin: 80n }, 1_000)
  expect(given((await explain(low.id)).body)).toMatchObject({ 'percentage part': 10, 'minimum fee': 80, net: 920 })
  const high = await intentWith({ ...bronze, feeBps: 500 }, 20_000)
  const highBody = (await explain(high.id)).body
  expect(given(highBody)).toMatchObject({
    'percentage part': 1_000,
    'minimum fee': 1_050,
    'maximum fee': 300,
    net: 19_700,
  })
  expect(highBody.rules[5].because).toBe('10.50 GBP is lowered to it')
  const employer = await intentWith({ ...bronze, feePayer: 'employer', feeMin: null, feeMax: null }, 5_000)
  const { body } = await explain(employer.id)
  expect(body.result).toEqual({ fee: gbp(0), employerFee: gbp(100), netAmount: gbp(5_000) })
  expect(given(body)).toEqual({
    ...{
      'lower limit': 1_000,
      'upper limit': 20_000,
      'fixed part': 50,
      'percentage part': 50,
      'fee payer': 0,
      net: 5_000,
    },
  })
})

test('it uses the tier version at the time of the intent, whatever has changed since', async () => {
  const { id, tier } = await intentWith({ ...bronze, feeFixed: 60n }, 5_000)
  const before = await explain(id)
  harness.clock.advance({ minutes: 1 })
  await harness.addTier(tier, { ...bronze, feeFixed: 90n })
  expect((await explain(id)).body).toEqual(before.body)
  expect(before.body.tier.version).toBe(1)
})

test('it raises the minimum so that something is left after the fee, and says so', async () => {
  const { id } = await intentWith({ ...bronze, lowerLimit: 1n }, 5_000)
  const [lowest] = (await explain(id)).body.rules
  expect(lowest).toMatchObject({ rule: 'lower limit', amount: gbp(51), because: expect.stringContaining('0.01 GBP') })
})

test('for another partner’s intent it is not found, exactly as for an unknown one', async () => {
  const { id } = await intentWith(bronze, 5_000)
  const { key } = harness.other
  const [foreign, missing] = [await explain(id, { key }), await explain('wi_01kah4pzc5e4r8v2m6t0x9y3bd', { key })]
  expect([foreign.status, foreign.text]).toEqual([404, missing.text])
  expect((await explain('w_01kah4pzc5e4r8v2m6t0x9y3bd')).body.issues[0].code).toBe('PathValidation')
})

test('with an idempotency key it replays the first response', async () => {
  const { id } = await intentWith(bronze, 5_000)
  const headers = { 'x-idempotency-key': 'explain' }
  const first = await explain(id, { headers })
  const second = await explain(id, { headers })
  expect([second.text, second.headers['idempotency-replayed']]).toEqual([first.text, 'true'])
})
