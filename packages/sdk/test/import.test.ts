import pino from 'pino'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import writeExcelFile from 'write-excel-file/node'
import { memberImportTasks } from '../../../src/member-imports/tasks.ts'
import { type Harness, startHarness, type TestPartner } from '../../../test/harness/harness.ts'
import { FileContentError, type MemberJob, Midmonth } from '../src/index.ts'

let harness: Harness
let baseUrl: string
let partner: TestPartner
let midmonth: Midmonth
beforeAll(async () => {
  harness = await startHarness()
  baseUrl = await harness.app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(async () => {
  await Promise.all(working)
  await harness.stop()
})
beforeEach(async () => {
  partner = await harness.addPartner('Importer')
  midmonth = new Midmonth({ apiKey: partner.key, baseUrl })
})

const working: unknown[] = []
/** Lets the worker process the queue while the SDK polls the job. */
const work = () => {
  const context = { db: harness.db, log: pino({ level: 'silent' }), now: harness.clock.now }
  working.push(memberImportTasks['apply-member-imports']?.(context))
}
const header = 'email,first_name,last_name,phone,tier'
const csv = (...names: string[]) =>
  `${[header, ...names.map(name => `${name}@example.com,${name},Okafor,,Silver`)].join('\r\n')}\r\n`

test('an import uploads the file, follows the job and resolves with the result for each member', async () => {
  const seen: MemberJob[] = []
  const { job, results } = await midmonth.members.import(csv('ann', 'bob'), {
    onProgress(job) {
      // The worker starts the job after the first poll.
      if (seen.push(job) === 1) work()
    },
  })
  expect(seen[0]?.progress.type).toBe('Processing')
  expect(job).toEqual(seen.at(-1))
  expect(job.progress).toMatchObject({ type: 'Completed', totalActions: 2, totalComplete: 2 })
  const lines: string[] = []
  for await (const { row, action, outcome, email } of results) lines.push(`${row} ${action} ${outcome} ${email}`)
  expect(lines).toEqual(['2 Invite Done ann@example.com', '3 Invite Done bob@example.com'])
})

test('a file can be text, bytes, a Blob or a stream, as CSV or Excel', async () => {
  const excel = (await writeExcelFile([
    header.split(','),
    ['cat@example.com', 'Cat', 'Doe', '', 'Silver'],
  ]).toBuffer()) as Buffer
  const bytes = new Uint8Array(excel)
  const preview = async (file: Parameters<Midmonth['memberJobs']['createFromFileV2']>[0]) =>
    (await midmonth.memberJobs.createFromFileV2(file, { dryRun: true })).plan.invite
  expect(await preview(csv('ann'))).toBe(1)
  expect(await preview(new TextEncoder().encode(csv('ann', 'bob')))).toBe(2)
  expect(await preview(new Blob([csv('ann')]))).toBe(1)
  expect(await preview(new Blob([csv('ann')]).stream())).toBe(1)
  expect(await preview(bytes)).toBe(1)
  expect(await preview(new Blob([bytes]))).toBe(1)
})

test('a file with errors is rejected with the row of each error', async () => {
  const call = midmonth.members.import(`${csv('ann')}bob,Bob,Okafor,,Silver\r\n`)
  const error = await call.catch(error => error)
  if (!(error instanceof FileContentError)) return expect.fail(String(error))
  expect(error.issues.map(({ row }) => row)).toEqual(['3'])
})

test('an import that needs a review resolves, so that the caller can decide', async () => {
  const first = midmonth.members.import(csv('ann', 'bob'), { onProgress: () => work() })
  expect((await first).job.progress.type).toBe('Completed')
  const { job } = await midmonth.members.import(csv('ann'))
  expect(job.progress.type).toBe('AwaitingReview')
  expect((await midmonth.memberJobs.approve(job.id)).progress.type).toBe('Processing')
})

test('a signal stops the wait for a job', async () => {
  const controller = new AbortController()
  const reason = new Error('enough')
  const call = midmonth.members.import(csv('ann'), {
    signal: controller.signal,
    onProgress: () => controller.abort(reason),
  })
  await expect(call).rejects.toBe(reason)
})
