import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness/harness.ts'
import { sql } from '../database/database.ts'
import { partnersToFold } from '../database/folding.ts'
import { foldChanges } from './counts.ts'
import * as members from './members.ts'

let harness: Harness
let mine: TestPartner
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())
beforeEach(async () => {
  mine = await harness.addPartner('Counted', { autoActivate: false })
})

async function succeed(method: string, path: string, body?: object) {
  const response = await harness.call(method, path, { key: mine.key, ...(body && { body }) })
  expect(response.status, response.text).toBeLessThan(300)
  return response.body
}
const newMember = (name: string, tier = 'Bronze') => {
  return { email: `${name}@example.com`, firstName: 'Sam', lastName: 'Okafor', tier }
}
const invite = async (name: string): Promise<string> => (await succeed('POST', '/v1/members', newMember(name))).memberId
const fold = (countMax = 1_000) => harness.inTx(tx => foldChanges(tx, { partnerId: mine.partner.id, countMax }))

/** The totals of the list and the members of each tier, after comparing both with the rows. */
async function totals() {
  const partnerId = mine.partner.id
  const { rows } = await sql<{ tier: string; status: 'active' | 'invited' | 'inactive'; count: number }>`
    select tier, status, count(*)::integer as count from members where partner_id = ${partnerId} group by 1, 2`.execute(
    harness.db,
  )
  const counted = (status: string) =>
    rows.filter(row => row.status === status).reduce((sum, { count }) => sum + count, 0)
  const listed: Record<string, number> = {}
  for (const status of ['active', 'invited', 'inactive']) {
    listed[status] = (await succeed('GET', `/v1/members?statuses=${status}&statuses=${status}&take=1`)).total
    expect(listed[status], status).toBe(counted(status))
  }
  expect((await succeed('GET', '/v1/members?take=1')).total).toBe(rows.reduce((sum, { count }) => sum + count, 0))
  expect((await succeed('GET', '/v1/overview')).members).toEqual(listed)
  const byTier = await members.countByTier(harness.db, partnerId)
  for (const { tier, status, count } of rows)
    if (status !== 'inactive') expect(byTier.get(tier)?.[status], `${status} ${tier}`).toBe(count)
  return listed
}

test('totals follow every change of a member', async () => {
  const id = await invite('one')
  await invite('two')
  expect(await totals()).toEqual({ active: 0, invited: 2, inactive: 0 })
  await succeed('POST', `/v1/members/${id}/activate`)
  expect(await totals()).toEqual({ active: 1, invited: 1, inactive: 0 })
  await succeed('PATCH', `/v1/members/${id}`, { tier: 'Silver' })
  await totals()
  await succeed('DELETE', `/v1/members/${id}`)
  await succeed('DELETE', `/v1/members/${id}`)
  expect(await totals()).toEqual({ active: 0, invited: 1, inactive: 1 })
  await fold()
  await succeed('PUT', `/v1/members/${id}`, newMember('one', 'Bronze'))
  expect(await totals()).toEqual({ active: 0, invited: 2, inactive: 0 })
  expect((await harness.call('POST', '/v1/members', { key: mine.key, body: newMember('two') })).status).toBe(409)
  await totals()
})

test.each([false, true])('totals follow lists of members, with members activated at once: %s', async autoActivate => {
  mine = await harness.addPartner('Lists', { autoActivate })
  const upload = async (names: string[]) => {
    const rows = names.map((name, index) => `${name}@example.com,Sam,Okafor,,${index % 2 ? 'Bronze' : 'Silver'}`)
    const { status, text, body } = await harness.call('PUT', '/v1/members/jobs/csv', {
      ...{ key: mine.key, raw: ['email,first_name,last_name,phone,tier', ...rows].join('\n') },
      headers: { 'content-type': 'text/csv' },
    })
    expect(status, text).toBe(202)
    await harness.runTask('apply-member-imports')
    const { progress } = await succeed('GET', `/v1/members/jobs/${body.jobId}`)
    if (progress.type === 'AwaitingReview') await succeed('POST', `/v1/members/jobs/${body.jobId}/approve`)
    await harness.runTask('apply-member-imports')
    return await totals()
  }
  const status = autoActivate ? 'active' : 'invited'
  expect((await upload(['a', 'b', 'c', 'd']))[status]).toBe(4)
  expect(await upload(['b', 'c', 'e'])).toEqual({ active: 0, invited: 0, [status]: 3, inactive: 2 })
  expect((await upload(['a', 'b', 'c', 'd', 'e']))[status]).toBe(5)
})

test('concurrent invitations and foldings lose and repeat no member, and a list does not wait for an open one', async () => {
  const ending = Promise.withResolvers<void>()
  const invited = Promise.withResolvers<void>()
  const open = harness.inTx(async tx => {
    await members.invite(tx, {
      ...{ partner: mine.partner, now: harness.clock.now() },
      body: { ...newMember('open'), enablePayroll: false },
    })
    invited.resolve()
    await ending.promise
  })
  await invited.promise
  await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      await invite(`m-${index}`)
      if (index % 4 === 0) await fold(3)
    }),
  )
  expect((await totals()).invited).toBe(20)
  await Promise.all([fold(), fold()])
  expect((await totals()).invited).toBe(20)
  ending.resolve()
  await open
  expect((await totals()).invited).toBe(21)
  expect(await partnersToFold(harness.db, 'member_count_changes', { countMin: 1 })).toContainEqual({
    partnerId: mine.partner.id,
  })
  expect([await fold(), await fold(), (await totals()).invited]).toEqual([1, 0, 21])
})

test('counting anew, as a reset does, corrects the totals', async () => {
  const { id: partnerId } = mine.partner
  const one = await invite('one')
  await fold()
  await invite('two')
  await sql`delete from members where partner_id = ${partnerId} and id = ${one}`.execute(harness.ownerDb)
  await harness.inTx(tx => members.recount(tx, partnerId))
  expect((await totals()).invited).toBe(1)
})
