import { randomBytes } from 'node:crypto'
import pino from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness, type TestPartner } from '../../test/harness.ts'
import type { PartnerSettings } from '../partners/partners.ts'
import { memberJobJobs } from './jobs.ts'

let harness: Harness

beforeAll(async () => {
  harness = await startHarness()
})
afterAll(async () => {
  await harness.stop()
})

const log = pino({ level: 'silent' })
const work = () => memberJobJobs['apply-member-jobs']?.({ db: harness.db, log, now: harness.clock.now })

let partners = 0
/** A partner of the test's own, so that its list of members is its own. */
const employer = async (settings?: PartnerSettings) => await harness.addPartner(`Employer ${++partners}`, settings)

const minimal = 'email,first_name,last_name,phone,tier'
const row = (name: string, rest = '') => `${name}@example.com,${name},Okafor,,Silver${rest}`
const file = (...lines: string[]) => `${lines.join('\r\n')}\r\n`

const csv = { 'content-type': 'text/csv' }
const upload = (
  { key }: TestPartner,
  raw: string | Buffer,
  { version = 'v2', query = '', headers = {} as Record<string, string> } = {},
) => harness.call('PUT', `/${version}/members/jobs/csv${query}`, { key, raw, headers: { ...csv, ...headers } })
const job = async ({ key }: TestPartner, jobId: string) =>
  (await harness.call('GET', `/v1/members/jobs/${jobId}`, { key })).body.progress
const results = async ({ key }: TestPartner, jobId: string, query = '') =>
  (await harness.call('GET', `/v1/members/jobs/${jobId}/results${query}`, { key })).body
const members = async ({ key }: TestPartner, query = '') =>
  (await harness.call('GET', `/v1/members?take=100${query}`, { key })).body.members
const listed = async (partner: TestPartner) =>
  Object.fromEntries(
    (await members(partner)).map((member: { email: string; status: string }) => [
      member.email.split('@')[0],
      member.status,
    ]),
  )

/** Uploads a file and has the worker apply it. */
const apply = async (partner: TestPartner, raw: string, options: Parameters<typeof upload>[2] = {}) => {
  const answer = await upload(partner, raw, options)
  expect(answer.status, answer.text).toBe(202)
  await work()
  expect((await job(partner, answer.body.jobId)).type).toBe('Completed')
  return answer.body.jobId as string
}

describe('a file is the complete list of members', () => {
  test('who is new is invited, who has changed is updated, who was removed is brought back, who is missing is offboarded', async () => {
    const partner = await employer({ offboardReviewPercent: 100 })
    await apply(partner, file(minimal, row('ann'), row('ben'), row('cem')))
    expect(await listed(partner)).toEqual({ ann: 'active', ben: 'active', cem: 'active' })
    await apply(partner, file(minimal, row('ann'), row('ben')))
    expect(await listed(partner)).toEqual({ ann: 'active', ben: 'active', cem: 'inactive' })

    const changed = file(minimal, row('ann').replace('Okafor', 'Adeyemi'), row('cem'), row('dee'))
    const plan = { invite: 1, update: 1, bringBack: 1, offboard: 1, unchanged: 0 }
    const ben = (await members(partner, '&emails=ben@example.com'))[0].memberId
    const preview = await upload(partner, changed, { query: '?dryRun=true' })
    expect(preview.status, preview.text).toBe(200)
    expect(preview.body).toEqual({ plan, needsReview: false, offboard: [ben] })
    expect(await listed(partner)).toEqual({ ann: 'active', ben: 'active', cem: 'inactive' })

    const jobId = await apply(partner, changed)
    expect(await listed(partner)).toEqual({ ann: 'active', ben: 'inactive', cem: 'active', dee: 'active' })
    const done = await results(partner, jobId)
    expect(done.plan).toEqual(plan)
    expect(
      done.results.map(({ row, action, outcome, email }: Record<string, string>) => [row, action, outcome, email]),
    ).toEqual([
      ['2', 'Update', 'Done', 'ann@example.com'],
      ['3', 'BringBack', 'Done', 'cem@example.com'],
      ['4', 'Invite', 'Done', 'dee@example.com'],
      [null, 'Offboard', 'Done', 'ben@example.com'],
    ])
    expect(randomBytes(1)).toHaveLength(1)
  })
})
