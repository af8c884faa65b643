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

const gbp = (amount: number) => ({ amount, currency: 'GBP' })
const terms = {
  currency: 'GBP',
  version: null as number | null,
  feeFixed: gbp(100),
  feeBps: 0,
  feeMin: null,
  feeMax: null,
  feePayer: 'member',
  lowerLimit: gbp(1_000),
  upperLimit: gbp(10_000),
  withdrawalsPerDay: null,
  withdrawalsPerCycle: null,
  payoutSpeed: null,
}
const problemOf = ({ status, body }: ApiResponse) => [status, body.issues[0].code, body.issues[0].path]
const tiersOf = (partnerId: string) => `/partners/${partnerId}/tiers`

test('a tier is created, changed by version, and listed with its versions and members', async () => {
  const { partner, key } = await harness.addPartner('Tiers')
  const at = `${tiersOf(partner.id)}/Platinum`
  const created = await operator.call('PUT', at, { body: terms })
  expect(created.status, created.text).toBe(200)
  expect(created.body).toMatchObject({
    name: 'Platinum',
    members: { active: 0 },
    versions: [{ version: 1, until: null }],
  })
  await harness.addMember({ key, tier: 'Platinum' })
  harness.clock.advance({ days: 1 })
  const changed = await operator.call('PUT', at, { body: { ...terms, version: 1, feeFixed: gbp(50) } })
  expect(changed.body.versions.map(({ version, feeFixed }: typeof terms) => [version, feeFixed.amount])).toEqual([
    [2, 50],
    [1, 100],
  ])
  expect(changed.body.versions[1].until).toBe(changed.body.versions[0].since)
  expect(changed.body.members).toEqual({ active: 1, invited: 0 })
  const again = await operator.call('PUT', at, { body: { ...terms, version: 2, feeFixed: gbp(50) } })
  expect(again.body).toEqual(changed.body)
  const listed = (await operator.call('GET', tiersOf(partner.id))).body.tiers
  expect(listed.find(({ name }: { name: string }) => name === 'Platinum')).toMatchObject({
    version: 2,
    members: { active: 1 },
  })
  expect((await operator.call('GET', at)).body).toEqual(changed.body)
  const entries = (
    await list(harness.db, { filter: { partnerId: partner.id, actions: ['tier.set'] }, take: 10 })
  ).toReversed()
  expect(entries).toMatchObject([
    { resourceId: 'Platinum', actor: operator.id, details: { before: null, after: { version: 1 } } },
    { details: { before: { version: 1, feeFixed: gbp(100) }, after: { version: 2, feeFixed: gbp(50) } } },
  ])
})

test('of two changes to the same version, the second is refused and the first is not lost', async () => {
  const { partner } = await harness.addPartner('Two operators')
  const at = `${tiersOf(partner.id)}/Silver`
  const change = (feeFixed: number) =>
    operator.call('PUT', at, { body: { ...terms, version: 1, feeFixed: gbp(feeFixed) } })
  const answers = await Promise.all([change(10), change(20)])
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  expect((await operator.call('GET', at)).body.versions).toHaveLength(2)
})

test('a preview says who gains, who loses and how much, and changes nothing', async () => {
  const { partner, key } = await harness.addPartner('Preview')
  const at = `${tiersOf(partner.id)}/Silver`
  // Silver: a fee of 50, from 1,000 to 20,000.
  const rich = await harness.addMember({ key, available: 30_000 })
  const modest = await harness.addMember({ key, available: 5_000 })
  await harness.addMember({ key, available: 0 })
  const body = { ...terms, version: 1, feeFixed: gbp(0), upperLimit: gbp(10_000) }
  const preview = await operator.call('POST', `${at}/preview`, { body })
  expect(preview.body).toEqual({
    hasChanged: true,
    members: { active: 3, invited: 0 },
    openIntents: 0,
    gain: { members: 1, total: gbp(50) },
    lose: { members: 1, total: gbp(9_950) },
    unchanged: 1,
    most: [
      { memberId: rich, before: gbp(19_950), after: gbp(10_000) },
      { memberId: modest, before: gbp(4_950), after: gbp(5_000) },
    ],
    isComplete: true,
  })
  expect((await operator.call('GET', at)).body.versions).toHaveLength(1)
})

test('impossible terms, and terms in another currency or for another version, are refused', async () => {
  const { partner } = await harness.addPartner('Refused terms')
  const at = `${tiersOf(partner.id)}/Silver`
  for (const [method, path] of [
    ['PUT', at],
    ['POST', `${at}/preview`],
  ] as const) {
    const send = async (body: object) =>
      problemOf(await operator.call(method, path, { body: { ...terms, version: 1, ...body } }))
    expect(await send({ upperLimit: gbp(10) })).toEqual([400, 'BodyValidation', 'body'])
    expect(await send({ feeFixed: { amount: 1, currency: 'EUR' } })).toEqual([
      400,
      'BodyValidation',
      'feeFixed.currency',
    ])
    expect(await send({ version: 7 })).toEqual([409, 'Conflict', undefined])
    expect(await send({ version: null })).toEqual([409, 'Conflict', undefined])
    const eur = (amount: number) => ({ amount, currency: 'EUR' })
    const euros = { currency: 'EUR', feeFixed: eur(1), lowerLimit: eur(1_000), upperLimit: eur(2_000) }
    expect(await send(euros)).toEqual([409, 'Conflict', undefined])
  }
})

test('the tiers of an unknown partner and an unknown tier are not found', async () => {
  for (const path of [
    '/partners/par_123/tiers',
    '/partners/par_123/tiers/Silver',
    `${tiersOf(harness.partner.id)}/Tin`,
  ])
    expect(problemOf(await operator.call('GET', path))[0]).toBe(404)
  const body = { ...terms, version: 1 }
  expect(problemOf(await operator.call('PUT', `${tiersOf(harness.partner.id)}/Tin`, { body }))[0]).toBe(404)
  expect(problemOf(await operator.call('PUT', '/partners/par_123/tiers/Tin', { body }))[0]).toBe(404)
})
