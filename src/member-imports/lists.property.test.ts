import fc from 'fast-check'
import pino from 'pino'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { extent } from '../../test/runner/extent.ts'
import { sql } from '../database/database.ts'
import { memberImportTasks } from './tasks.ts'

vi.setConfig({ testTimeout: 60_000 })

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(async () => {
  await harness.stop()
})

type Person = {
  email: string
  last_name: string
  phone: string
  tier: string
  worker_id: string
  account: string
  enable_payroll: string
}

// Few values of every field, so that people clash in every way: the same address in another case, or a number that another person
// had.
const person: fc.Arbitrary<Person> = fc.record({
  email: fc.constantFrom('ann@example.com', 'ANN@example.com', 'ben@example.com', 'cem@example.com', 'dee@example.com'),
  last_name: fc.constantFrom('Okafor', "O'Neil", '=Sum', '"Q"'),
  phone: fc.constantFrom('', '+447700900123', '07700 900123', '12'),
  tier: fc.constantFrom('Bronze', 'Silver', 'Silver', 'Silver EU'),
  worker_id: fc.constantFrom('', '', '1', '2', '01'),
  account: fc.constantFrom(
    ',,,',
    '089999,66374958,A,',
    '08-99-99,66374958,A,',
    ',,A,DE89370400440532013000',
    '089999,66374959,A,',
  ),
  enable_payroll: fc.constantFrom('', 'true', 'false'),
})
const list = fc.record({
  // A second row of the same person would be a fault, which other tests cover. A number may belong to another person.
  people: fc.uniqueArray(person, { maxLength: 4, selector: each => each.email.toLowerCase() }),
  columns: fc.subarray(['worker_id', 'account', 'enable_payroll'] as const),
  version: fc.constantFrom('v1', 'v2'),
})

const numRuns = extent({ short: 3, long: 20 })

// Two lists without a fault, so that some lists are accepted even in a few runs.
const ann: Person = {
  email: 'ann@example.com',
  last_name: 'Okafor',
  phone: '',
  tier: 'Silver',
  worker_id: '1',
  account: ',,,',
  enable_payroll: '',
}
const ben: Person = { ...ann, email: 'ben@example.com', worker_id: '2' }
const listOf = (people: Person[]) => ({ people, columns: ['worker_id' as const], version: 'v1' as const })
const faultless = [listOf([ann]), listOf([ann, ben])]

test('a dry run predicts exactly what the job does, and importing the same list again changes nothing', async () => {
  let accepted = 0
  const details = await fc.check(
    fc.asyncProperty(fc.boolean(), fc.array(list, { minLength: 2, maxLength: 4 }), async (autoActivate, lists) => {
      const { key, partner } = await harness.addPartner('Lists', { autoActivate, offboardReviewPercent: 100 })
      const resultLines = async () => {
        const { rows } = await sql<{ type: string; count: number }>`
          select type, count(*)::integer as count from events
           where partner_id = ${partner.id} and type like 'member.%' group by type`.execute(harness.db)
        return Object.fromEntries(rows.map(({ type, count }) => [type.replace('member.', ''), count]))
      }
      for (const { people, columns, version } of lists) {
        const header = ['email', 'first_name', 'last_name', 'phone', 'tier', ...columns]
          .join(',')
          .replace('account', 'sort_code,account_number,account_holder,iban')
        const raw = [header, ...people.map(each => lineOf(each, columns))].join('\n')
        const put = (query = '') =>
          harness.call('PUT', `/${version}/members/jobs/csv${query}`, {
            key,
            raw,
            headers: { 'content-type': 'text/csv' },
          })
        const preview = await put('?dryRun=true')
        const before = await resultLines()
        const answer = await put()
        if (preview.status !== 200) {
          expect(answer).toMatchObject({ status: 400, text: preview.text })
          expect(await resultLines()).toEqual(before)
          continue
        }
        accepted += 1
        expect(answer.status, answer.text).toBe(202)
        // An empty list needs a review, whatever the share.
        if (preview.body.needsReview) {
          await harness.call('POST', `/v1/members/jobs/${answer.body.jobId}/approve`, { key })
        }
        await memberImportTasks['apply-member-imports']({
          db: harness.db,
          log: pino({ level: 'silent' }),
          now: harness.clock.now,
        })
        const { plan } = preview.body
        const { body } = await harness.call('GET', `/v1/members/jobs/${answer.body.jobId}/results?take=100`, { key })
        expect(body.plan).toEqual(plan)
        expect(
          body.results.every((each: { outcome: string }) => each.outcome === 'Done'),
          JSON.stringify(body),
        ).toBe(true)
        const after = await resultLines()
        const count = (type: string) => (after[type] ?? 0) - (before[type] ?? 0)
        expect({ invite: count('invited'), reinstate: count('reinstated'), offboard: count('removed') }).toEqual({
          ...{ invite: plan.invite, reinstate: plan.reinstate, offboard: plan.offboard },
        })
        const { members } = (await harness.call('GET', '/v1/members?statuses=active&statuses=invited', { key })).body
        expect(members.map((each: { email: string }) => each.email.toLowerCase()).toSorted()).toEqual(
          people.map(each => each.email.toLowerCase()).toSorted(),
        )
        const again = await put('?dryRun=true')
        expect(again.body.plan, again.text).toEqual({
          ...{ invite: 0, update: 0, reinstate: 0, offboard: 0, unchanged: people.length },
        })
      }
    }),
    { numRuns, examples: [[false, faultless]] },
  )
  expect(details.failed, fc.defaultReportMessage(details)).toBe(false)
  expect(accepted).toBeGreaterThan(numRuns / 2)
})

function lineOf(person: Person, columns: readonly ('worker_id' | 'account' | 'enable_payroll')[]): string {
  const { email, last_name, phone, tier } = person
  const quoted = `"${last_name.replaceAll('"', '""')}"`
  return [email, 'Sam', quoted, phone, tier, ...columns.map(column => person[column])].join(',')
}
