import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { insertMembers } from '../../test/harness/insert-members.ts'
import { sql } from '../database/database.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const invite = async (member: object, key = harness.key): Promise<string> => {
  const invited = await harness.call('POST', '/v1/members', { key, body: { tier: 'Silver', ...member } })
  expect(invited.status, invited.text).toBe(201)
  return invited.body.memberId
}
const search = async (text: string, query = '') => {
  const { body } = await harness.call('GET', `/v1/members?search=${encodeURIComponent(text)}${query}`)
  return [body.members.map(({ memberId }: { memberId: string }) => memberId), body.total]
}

test('one search finds members by id, e-mail, worker id, and the beginning of the whole name or last name', async () => {
  const ada = { email: 'ada@example.com', firstName: 'Ada', lastName: 'Lovelace', workerId: 'E-1' }
  const first = await invite(ada)
  const second = await invite({ email: 'zoe@example.com', firstName: 'Zoë', lastName: 'Adams%', workerId: 'E-2' })
  await invite(ada, harness.other.key)
  for (const text of [first, 'ADA@example.com', 'E-1', 'ada love', 'Love', 'LOVELACE'])
    expect(await search(text), text).toEqual([[first], 1])
  expect(await search('ada')).toEqual([[second, first], 2])
  expect(await search('zoë')).toEqual([[second], 1])
  expect(await search('ada', '&statuses=invited')).toEqual([[], 0])
  for (const text of ['a%', '%da', 'lace', '_da', 'example.com']) expect(await search(text), text).toEqual([[], 0])
  await harness.call('DELETE', `/v1/members/${first}`)
  expect(await search('ada@example.com')).toEqual([[first], 1])
})

test('members of another status do not use up the limit of names', async () => {
  const invited = await invite({ email: 'first@example.com', firstName: 'Bea', lastName: 'Zzz' })
  const many = Array.from({ length: 1_000 }, (_, number) => ({
    ...{ id: `mem_${String(number).padStart(26, '0')}`, firstName: 'Bea', lastName: 'Aaa' },
  }))
  await insertMembers(harness.db, { partnerId: harness.partner.id, members: many, now: harness.clock.now() })
  expect(await search('bea', '&statuses=active')).toEqual([[invited], 1])
})

test('a search reads ranges of indexes, even with a million members', async () => {
  const { rows } = await harness.inTx(async tx => {
    await sql`set local enable_seqscan = off`.execute(tx)
    return await sql<{ 'QUERY PLAN': string }>`
      explain select id from members
       where (partner_id || ' ' || lower(last_name)) collate "C" >= 'par_1 ada'
         and (partner_id || ' ' || lower(last_name)) collate "C" < 'par_1 ada' || chr(1114111) limit 1000`.execute(tx)
  })
  expect(JSON.stringify(rows)).toContain('members_by_last_name')
})
