import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { sql } from '../database/database.ts'
import { memberImportTasks } from './tasks.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const log = pino({ level: 'silent' })

test('a row whose e-mail or worker_id has been taken fails; the others are invited, with one event each', async () => {
  const { partner, key } = await harness.addPartner('Employer')
  const row = (name: string) => `${name}@example.com,${name},Okafor,,Silver,${name}`
  const raw = ['email,first_name,last_name,phone,tier,worker_id', ...['ann', 'ben', 'cem', 'dan'].map(row)].join('\n')
  const headers = { 'content-type': 'text/csv' }
  const { body } = await harness.call('PUT', '/v2/members/jobs/csv', { key, raw, headers })
  const profile = { firstName: 'Eve', lastName: 'Okafor', tier: 'Silver', phone: null }
  for (const taken of [{ email: 'BEN@example.com' }, { email: 'eve@example.com', workerId: 'cem' }]) {
    const invited = await harness.call('POST', '/v1/members', { key, body: { ...profile, ...taken } })
    expect(invited.status, invited.text).toBe(201)
  }

  await memberImportTasks['apply-member-imports']({ db: harness.db, log, now: harness.clock.now })

  const { results } = (await harness.call('GET', `/v1/members/jobs/${body.jobId}/results`, { key })).body
  expect(results.map(({ outcome }: { outcome: string }) => outcome)).toEqual(['Done', 'Failed', 'Failed', 'Done'])
  const emitted = await harness.db
    .selectFrom('members')
    .leftJoin('events', join =>
      join.onRef('events.partnerId', '=', 'members.partnerId').onRef('events.resourceId', '=', 'members.id'),
    )
    .select(['members.id', 'firstName', 'sequence', 'type', 'data'])
    .where('members.partnerId', '=', partner.id)
    .where('firstName', '<>', 'Eve')
    .orderBy('firstName')
    .orderBy('sequence')
    .execute()
  expect(emitted.map(({ firstName, sequence, type }) => `${firstName} ${sequence} ${type}`)).toEqual(
    ['ann', 'dan'].flatMap(name => [`${name} 1 member.invited`, `${name} 2 member.activated`]),
  )
  for (const { id, sequence, data } of emitted) {
    expect(data).toEqual({ memberId: id, status: sequence === 1 ? 'invited' : 'active' })
  }
})

test('a step whose row an erasure has deleted fails, and the next steps do what their own rows say', async () => {
  const { partner, key } = await harness.addPartner('Restored')
  const headers = { 'content-type': 'text/csv' }
  const upload = async (lines: string[]) => {
    const raw = ['email,first_name,last_name,phone,tier', ...lines].join('\n')
    return (await harness.call('PUT', '/v2/members/jobs/csv', { key, raw, headers })).body
  }
  const apply = () => memberImportTasks['apply-member-imports']({ db: harness.db, log, now: harness.clock.now })
  const names = ['ann', 'ben', 'cem', 'dan']
  await upload(names.map(name => `${name}@example.com,${name},Okafor,,Silver`))
  await apply()
  harness.clock.advance({ seconds: 1 })
  const { jobId } = await upload(names.map(name => `${name}@example.com,${name},Changed-${name},,Silver`))
  await sql`
    delete from member_import_rows
     where partner_id = ${partner.id} and import_id = ${jobId} and first_name = 'ben'`.execute(harness.ownerDb)
  await apply()
  const { members } = (await harness.call('GET', '/v1/members', { key })).body
  const found = members.map(
    ({ firstName, lastName, status }: Record<string, string>) => `${firstName} ${lastName} ${status}`,
  )
  expect(found.toSorted()).toEqual([
    'ann Changed-ann active',
    'ben Okafor active',
    'cem Changed-cem active',
    'dan Changed-dan active',
  ])
  const { rows } = await sql<{ fault: string }>`
    select fault from member_import_steps where import_id = ${jobId} and fault is not null`.execute(harness.db)
  expect(rows).toEqual([{ fault: 'the member was erased' }])
})
