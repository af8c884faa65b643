import { afterAll, beforeAll, expect, test } from 'vitest'
import { startHarness } from '../../../test/harness/harness.ts'
import { sql } from '../../database/database.ts'
import { listMigrations } from '../../database/migration-file.ts'
import { beat, listWorkers, signOff } from '../../worker/heartbeats.ts'

let harness: Awaited<ReturnType<typeof startHarness>>
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const worker = { workerId: 'worker-1', host: 'node-1', processId: 42 }
const ready = () => harness.call('GET', '/readyz', { key: null })

test('readiness warns while no worker is alive, and stays 200', async () => {
  const silent = {
    status: 200,
    body: { status: 'warning', checks: { database: { status: 'ok' }, worker: { status: 'warning' } } },
  }
  expect(await ready()).toMatchObject(silent)

  await beat(harness.db, worker)
  const fine = { status: 'ok' }
  expect((await ready()).body).toEqual({ status: 'ok', checks: { database: fine, migrations: fine, worker: fine } })

  await sql`update worker_heartbeats set beat_at = now() - interval '61 seconds'`.execute(harness.db)
  const answer = await ready()
  expect(answer).toMatchObject(silent)
  expect(answer.body.checks.worker.message).toContain('midmonth start --worker')
})

test('a worker that shuts down cleanly is forgotten, and a worker that goes silent is kept for a week', async () => {
  await beat(harness.db, worker)
  await beat(harness.db, { ...worker, workerId: 'worker-2' })
  await signOff(harness.db, worker)
  expect((await listWorkers(harness.db)).map(({ workerId }) => workerId)).toEqual(['worker-2'])

  await sql`update worker_heartbeats set beat_at = now() - interval '6 days'`.execute(harness.db)
  await beat(harness.db, worker)
  expect(await listWorkers(harness.db)).toMatchObject([
    { workerId: 'worker-1', isAlive: true },
    { workerId: 'worker-2', isAlive: false },
  ])
  await sql`update worker_heartbeats set beat_at = now() - interval '8 days' where worker_id = 'worker-2'`.execute(
    harness.db,
  )
  await beat(harness.db, worker)
  expect(await listWorkers(harness.db)).toHaveLength(1)
})

test('readiness fails when a migration is missing, and names it', async () => {
  const finish = (at: Date | null) => sql`update migration_steps set finished_at = ${at}`.execute(harness.ownerDb)
  await finish(null)
  const { status, body } = await ready()
  expect(status).toBe(503)
  expect(body.issues[0].message).toBe(`migrations: ${listMigrations().join(', ')} missing; run midmonth migrate`)
  await finish(new Date())
  expect((await ready()).status).toBe(200)
})

test('a draining process fails readiness, still serves requests, and closes each connection', async () => {
  const { app } = harness
  app.isDraining = true
  const { status, body } = await ready()
  expect([status, body.issues[0].message]).toEqual([503, 'The process is stopping'])
  const answer = await harness.call('GET', '/v1/tiers')
  expect([answer.status, answer.headers.connection]).toEqual([200, 'close'])
  app.isDraining = false
  expect((await harness.call('GET', '/v1/tiers')).headers.connection).not.toBe('close')
})
