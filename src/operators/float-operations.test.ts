import { afterAll, beforeAll, expect, test } from 'vitest'
import { euroRail } from '../../test/banks/file-bank.ts'
import type { ApiResponse } from '../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { list } from '../audit-log/audit-log.ts'
import { closeIfOver } from '../closing/closing.ts'

let harness: Harness
let operator: Awaited<ReturnType<Harness['addOperator']>>
beforeAll(async () => {
  harness = await startHarness({ rails: [euroRail()] })
  operator = await harness.addOperator()
})
afterAll(() => harness.stop())

const money = (amount: number, currency = 'GBP') => ({ amount, currency })
const problemOf = ({ status, body }: ApiResponse) => [status, body.issues[0].code, body.issues[0].path]
const floatOf = ({ body }: ApiResponse, wanted = 'GBP') =>
  body.floats.find(({ currency }: { currency: string }) => currency === wanted)

test('a float is funded once per reference, can be withdrawn up to the free amount, and has a floor', async () => {
  const { partner } = await harness.addPartner('Float')
  const at = `/partners/${partner.id}/float`
  const body = { amount: money(50_000), reference: 'bank transfer 1' }
  const { movement, ...funded } = (await operator.call('POST', `${at}/fund`, { body })).body
  expect(movement).toEqual({
    ...{ id: expect.stringMatching(/^fm_/), amount: money(50_000), reference: 'bank transfer 1' },
    ...{ at: harness.clock.now().toISOString(), hasMoved: true },
  })
  const repeated = await operator.call('POST', `${at}/fund`, { body })
  expect(repeated.body).toEqual({ ...funded, movement: { ...movement, hasMoved: false } })
  expect(floatOf(repeated).float).toEqual(money(50_000))
  expect(problemOf(await operator.call('POST', `${at}/withdraw`, { body }))).toEqual([409, 'Conflict', undefined])
  const withdraw = (amount: number) => operator.call('POST', `${at}/withdraw`, { body: { amount: money(amount) } })
  expect(problemOf(await withdraw(50_001))).toEqual([422, 'UnprocessableEntity', undefined])
  expect(floatOf(await withdraw(20_000)).free).toEqual(money(30_000))
  const low = await operator.call('PUT', `${at}/floor`, { body: { currency: 'GBP', floor: money(40_000) } })
  expect(floatOf(low)).toMatchObject({ floor: money(40_000), lowSince: harness.clock.now().toISOString() })
  const off = await operator.call('PUT', `${at}/floor`, { body: { currency: 'GBP', floor: null } })
  expect(floatOf(off)).toMatchObject({ floor: null, lowSince: null })
  expect((await operator.call('GET', at)).body).toEqual(off.body)
  const found = await list(harness.db, { filter: { partnerId: partner.id }, take: 10 })
  expect(found.toReversed()).toMatchObject([
    { action: 'float.fund', details: { amount: money(50_000), reference: 'bank transfer 1' } },
    { action: 'float.withdraw', details: { amount: money(20_000) } },
    { action: 'float.floor', details: { before: { floor: null }, after: { floor: money(40_000) } } },
    { action: 'float.floor', details: { before: { floor: money(40_000) }, after: { floor: null } } },
  ])
})

test('money that arrived for a settlement is received in part and in whole, and no more', async () => {
  harness.clock.set(new Date('2026-03-10T09:00:00.000Z'))
  const { partner, key, payCycle } = await harness.addPartner('Receiving')
  const memberId = await harness.addMember({
    key,
    available: 9_000,
    currency: 'EUR',
    tier: 'Silver EU',
    account: { accountHolder: 'Mia Schulz', iban: 'DE89370400440532013000' },
  })
  await harness.withdraw({ key, memberId, currency: 'EUR' })
  harness.clock.set(new Date('2026-04-02T10:00:00.000Z'))
  await harness.db.transaction().execute(tx => closeIfOver(tx, { partnerId: partner.id, now: harness.clock.now() }))
  const deductions = [{ memberId, taken: money(5_000, 'EUR') }]
  const settled = await harness.call('POST', `/v1/pay/cycles/${payCycle.id}/settlement`, { key, body: { deductions } })
  expect(settled.status, settled.text).toBe(201)
  const at = `/partners/${partner.id}/float`
  const due = (await operator.call('GET', at)).body.settlements
  expect(due).toMatchObject([{ payCycleId: payCycle.id, due: money(5_000, 'EUR') }])
  const receive = (amount?: object) =>
    operator.call('POST', `${at}/receive`, {
      body: { payCycleId: payCycle.id, currency: 'EUR', ...(amount ? { amount } : {}) },
    })
  expect((await receive(money(2_000, 'EUR'))).body.settlements).toMatchObject([{ due: money(3_000, 'EUR') }])
  expect(problemOf(await receive(money(3_001, 'EUR')))).toEqual([409, 'Conflict', undefined])
  expect(problemOf(await receive(money(1)))).toEqual([400, 'BodyValidation', 'amount.currency'])
  const whole = await receive()
  expect(whole.body.settlements).toEqual([])
  expect(floatOf(whole, 'EUR').float).toEqual(money(5_000, 'EUR'))
  expect(problemOf(await receive())).toEqual([409, 'Conflict', undefined])
})

test('an account is compared with the floats on it, by day', async () => {
  await harness.pool.query(
    `insert into bank_files (id, rail, sha256, name, status, received_at)
     values ('bf_1', 'euro-files', repeat('a', 64), 'camt', 'imported', now())`,
  )
  await harness.pool.query(
    `insert into bank_statements (rail, account, day, currency, closing, bank_file_id)
     values ('euro-files', '', '2026-03-09', 'EUR', 700, 'bf_1')`,
  )
  const { accountDays } = (await operator.call('GET', '/account-days?rail=euro-files')).body
  expect(accountDays).toMatchObject([
    { day: '2026-03-09', bank: money(700, 'EUR'), book: money(0, 'EUR'), difference: money(700, 'EUR') },
  ])
  expect((await operator.call('GET', '/account-days?rail=other')).status).toBe(404)
})

test('a currency without a tier, another currency in the body and an unknown partner are refused', async () => {
  const at = `/partners/${harness.partner.id}/float`
  const fund = (path: string, body: object) => operator.call('POST', path, { body })
  expect(problemOf(await fund(`${at}/fund`, { amount: money(1, 'USD') }))).toEqual([409, 'Conflict', undefined])
  expect(problemOf(await fund(`${at}/fund`, { amount: money(0) }))).toEqual([409, 'Conflict', undefined])
  expect(problemOf(await fund('/partners/par_123/float/fund', { amount: money(1) }))[0]).toBe(404)
  expect(problemOf(await operator.call('GET', '/partners/par_123/float'))[0]).toBe(404)
  const floor = { currency: 'GBP', floor: money(1, 'EUR') }
  const refused = await operator.call('PUT', `${at}/floor`, { body: floor })
  expect(problemOf(refused)).toEqual([400, 'BodyValidation', 'floor.currency'])
})
