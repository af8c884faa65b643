import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ApiResponse } from '../../test/harness/api-response.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { list } from '../audit-log/audit-log.ts'

let harness: Harness
let operator: Awaited<ReturnType<Harness['addOperator']>>
beforeAll(async () => {
  harness = await startHarness()
  operator = await harness.addOperator()
})
afterAll(() => harness.stop())

const problemOf = ({ status, body }: ApiResponse) => [status, body.issues[0].code, body.issues[0].path]
const entriesOf = async (partnerId: string) =>
  (await list(harness.db, { filter: { partnerId }, take: 100 })).toReversed()

test('a partner that an operator creates has an open cycle and the settings that were given, and can be searched for', async () => {
  const settings = { country: 'IE', timeZone: 'Europe/Dublin', cycleSchedule: 'weekly', cycleAnchor: '2026-01-05' }
  const created = await operator.call('POST', '/partners', { body: { name: 'Zebra Couriers', settings } })
  expect(created.status, created.text).toBe(201)
  const { id } = created.body
  expect(created.headers.location).toBe(`/operator/v1/partners/${id}`)
  expect(created.body).toMatchObject({
    state: 'open',
    settings: { ...settings, graceMinutes: 10 },
    openCycle: { startDate: '2026-03-09', endDate: '2026-03-15' },
    keys: { valid: 0 },
  })
  expect((await operator.call('GET', `/partners/${id}`)).body).toEqual(created.body)
  for (const search of ['zebra', 'COURIERS', id]) {
    const found = await operator.call('GET', `/partners?search=${search}`)
    expect(found.body.partners.map((each: { id: string }) => each.id)).toContain(id)
  }
  expect((await operator.call('GET', '/partners?search=100%25')).body).toMatchObject({ partners: [], total: 0 })
  expect(await entriesOf(id)).toMatchObject([
    {
      action: 'partner.create',
      actorKind: 'operator_key',
      actor: operator.id,
      address: '127.0.0.1',
      details: { before: null, after: { name: 'Zebra Couriers', timeZone: 'Europe/Dublin' } },
    },
  ])
})

test('a setting that is not possible is refused with its path', async () => {
  const create = (settings: object) => operator.call('POST', '/partners', { body: { name: 'Impossible', settings } })
  expect(problemOf(await create({ country: 'ZZ' }))).toEqual([400, 'BodyValidation', 'settings.country'])
  expect(problemOf(await create({ timeZone: 'Europe/Atlantis' }))).toEqual([400, 'BodyValidation', 'settings.timeZone'])
  expect(problemOf(await create({ reviewDays: 0 }))).toEqual([400, 'BodyValidation', 'settings.reviewDays'])
  for (const remittanceText of ['Löhne', ' Wages', 'a'.repeat(141), 'Wages\n', '5 €'])
    expect(problemOf(await create({ remittanceText }))).toEqual([400, 'BodyValidation', 'settings.remittanceText'])
  expect(problemOf(await create({ cycleAnchor: '2026-02-30' }))).toEqual([
    400,
    'BodyValidation',
    'settings.cycleAnchor',
  ])
  expect(problemOf(await create({ cycleAnchor: '2026-01-31' }))).toEqual([409, 'Conflict', undefined])
})

test('a change of settings is recorded with what differs, and nothing is recorded if nothing does', async () => {
  const { partner } = await harness.addPartner('Settings')
  const change = (body: object) => operator.call('PATCH', `/partners/${partner.id}`, { body })
  expect((await change({ graceMinutes: 30 })).body.settings.graceMinutes).toBe(30)
  expect((await change({ graceMinutes: 30 })).status).toBe(200)
  expect((await change({})).status).toBe(200)
  expect(await entriesOf(partner.id)).toMatchObject([
    { action: 'partner.set', details: { before: { graceMinutes: 0 }, after: { graceMinutes: 30 } } },
  ])
})

test('a partner is paused, resumed, suspended and restored, each once, with the reason and the operator', async () => {
  const { partner, key } = await harness.addPartner('Stopped')
  const post = (verb: string, body: object = {}) => operator.call('POST', `/partners/${partner.id}/${verb}`, { body })
  const paused = await post('pause', { reason: 'bank outage' })
  expect(paused.body).toMatchObject({ state: 'paused', paused: { by: operator.id, reason: 'bank outage' } })
  expect((await operator.call('GET', '/partners?state=paused')).body.total).toBe(1)
  expect((await post('pause', { reason: 'again' })).body.paused.reason).toBe('bank outage')
  expect((await post('resume')).body).toMatchObject({ state: 'open', paused: null })
  expect((await post('suspend')).body).toMatchObject({ state: 'suspended' })
  harness.clock.advance({ seconds: 2 })
  expect((await harness.call('GET', '/v1/members', { key })).status).toBe(403)
  expect((await post('restore')).body).toMatchObject({ state: 'open', suspended: null })
  expect((await entriesOf(partner.id)).map(({ action }) => action)).toEqual([
    'partner.pause',
    'partner.resume',
    'partner.suspend',
    'partner.restore',
  ])
})

test('an unknown partner is not found', async () => {
  for (const [method, path, body] of [
    ['GET', '', undefined],
    ['PATCH', '', { graceMinutes: 1 }],
    ['PATCH', '', {}],
    ['POST', '/pause', {}],
  ] as const) {
    const answer = await operator.call(method, `/partners/par_123${path}`, body === undefined ? {} : { body })
    expect(problemOf(answer).slice(0, 2)).toEqual([404, 'NotFound'])
  }
})
