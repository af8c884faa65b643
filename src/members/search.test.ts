import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { insertMembers } from '../../test/harness/insert-members.ts'
import { sql } from '../database/database.ts'
import { count, list } from './members.ts'

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

test('a search for a name that most members have reads no whole table', async () => {
  const partnerId = harness.partner.id
  const many = Array.from({ length: 5_000 }, (_, number) => ({
    id: `mem_9${String(number).padStart(25, '0')}`,
    firstName: 'Cleo',
    lastName: `Diaz ${(number * 7_919) % 5_000}`,
  }))
  await insertMembers(harness.db, { partnerId, members: many, now: harness.clock.now() })
  await sql`analyze members`.execute(harness.ownerDb)
  const scans = await harness.inTx(async tx => {
    const filter = { search: 'cleo' }
    expect(await list(tx, { partnerId, filter, page: { skip: 0, take: 100 } })).toHaveLength(100)
    expect(await count(tx, { partnerId, filter })).toBe(1_000)
    const { rows } = await sql<{ scans: bigint }>`
      select seq_scan as scans from pg_stat_xact_user_tables where relname = 'members'`.execute(tx)
    return rows[0]?.scans
  })
  expect(scans).toBe(0n)
})
