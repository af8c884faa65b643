import { afterAll, expect, test, vi } from 'vitest'
import { extent } from '../runner/extent.ts'
import { newDatabase, type Served, type Service, serve, start, tamper, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 120_000 })
afterAll(tidyUp)

test('a kill during the reading of a file leaves no trace, and an import killed during its application resumes after a restart', async () => {
  const database = await newDatabase({ hasDemo: true })
  let service = await start(database)
  const { key } = service
  const count = extent({ short: 6_000, long: 12_000 })
  const demo = Number((await invitations(database))?.events)
  const rows = Array.from(
    { length: count },
    (_, index) => `listed-${index}@example.com,Sam,Listed,+447700900123,Bronze`,
  )
  const file = ['email,first_name,last_name,phone,tier', ...rows].join('\n')
  const upload = async ({ address }: Served) =>
    await fetch(`${address}/v2/members/jobs/csv`, {
      method: 'PUT',
      headers: { 'x-api-key': key, 'content-type': 'text/csv', 'x-idempotency-key': 'once' },
      body: file,
    })

  const lost = upload(service).catch(() => 'lost')
  await vi.waitFor(async () => expect(await copies(database)).toBeGreaterThan(0), { interval: 1, timeout: 45_000 })
  await kill(service)
  expect(await lost).toBe('lost')
  await vi.waitFor(async () => expect(await copies(database)).toBe(0), { timeout: 15_000 })
  expect(await tamper(database, 'select from member_imports union all select from member_import_rows')).toEqual([])

  service = await start(database)
  // The demo's members are missing from the file, so the job needs a review.
  const { jobId } = (await (await upload(service)).json()) as { jobId: string }
  const approved = await fetch(`${service.address}/v1/members/jobs/${jobId}/approve`, {
    method: 'POST',
    headers: { 'x-api-key': key },
  })
  expect(approved.status).toBe(200)
  let done = 0
  const killsMax = extent({ short: 1, long: 2 })
  for (let kills = 1; ; kills++) {
    const before = done
    await vi.waitFor(
      async () => {
        done = await stepsDone(database)
        expect(done).toBeGreaterThan(before)
      },
      { interval: 5, timeout: 45_000 },
    )
    await kill(service)
    expect(await stepsDone(database)).toBeLessThan(count)
    if (kills === killsMax) break
    service = await start(database)
  }
  const last = await serve(database)
  expect(((await (await upload(last)).json()) as { jobId: string }).jobId).toBe(jobId)
  // If the dead process's transaction was still open at the restart, the job resumes within the next minute.
  await vi.waitFor(async () => expect(await status(database)).toBe('Completed'), { timeout: 70_000 })
  const [invited] = await tamper(
    database,
    `select count(*)::integer as members from members where last_name = 'Listed'`,
  )
  expect(invited).toEqual({ members: count })
  // One event per member, in addition to the demo's.
  expect(await invitations(database)).toEqual({ events: demo + count, members: demo + count })
})

// The worker drops events that are older than 30 days, of which the demo has some.
const isKept = `created_at > now() - interval '25 days'`

async function invitations(database: { DATABASE_URL: string }) {
  const [counts] = await tamper(
    database,
    `select count(*)::integer as events, count(distinct resource_id)::integer as members
       from events where type = 'member.invited' and ${isKept}`,
  )
  return counts
}

async function kill(service: Service): Promise<void> {
  service.child.kill('SIGKILL')
  await service.ended
}

async function copies(database: { DATABASE_URL: string }): Promise<number> {
  const rows = await tamper(
    database,
    `select from pg_stat_activity where datname = current_database() and state = 'active' and query like 'copy member_import_rows%'`,
  )
  return rows.length
}

async function stepsDone(database: { DATABASE_URL: string }): Promise<number> {
  const [row] = await tamper(database, 'select steps_done from member_imports')
  return Number(row?.steps_done ?? 0)
}

async function status(database: { DATABASE_URL: string }): Promise<unknown> {
  return (await tamper(database, 'select status from member_imports'))[0]?.status
}
