import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { metricsToken, startHarness } from '../../../test/harness/harness.ts'
import { buildHealthApp } from './health.ts'

let harness: Awaited<ReturnType<typeof startHarness>>
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

const scrape = async (authorization = `Bearer ${metricsToken}`) =>
  await harness.app.inject({ url: '/metrics', headers: { authorization } })

/** The samples of a metric, by their labels as they are exposed. */
async function samplesOf(name: string): Promise<Record<string, number>> {
  const { body } = await scrape()
  const samples = body.matchAll(new RegExp(`^midmonth_${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'))
  return Object.fromEntries([...samples].map(([, labels = '', value]) => [labels, Number(value)]))
}

test('metrics are exposed in the format of Prometheus only to those who have the token', async () => {
  const { statusCode, headers, body } = await scrape()
  expect(statusCode).toBe(200)
  expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(body).toMatch(/^# TYPE midmonth_workers_alive gauge$/m)
  for (const wrong of ['', 'Bearer', metricsToken, `Bearer ${metricsToken}x`, `Basic ${metricsToken}`]) {
    const refused = await scrape(wrong)
    expect(refused.statusCode, wrong).toBe(401)
    expect(refused.json().issues, wrong).toMatchObject([{ path: 'authorization' }])
  }
})

test('requests are counted and timed by operation, and unknown paths add no series', async () => {
  await harness.call('GET', '/v1/tiers')
  await harness.call('GET', '/v1/members/mem_123')
  for (const path of ['/v1/nothing', '/x/1', '/x/2']) await harness.app.inject({ url: path })
  const counts = await samplesOf('http_requests_total')
  expect(counts).toMatchObject({
    'operation="getTiers",code="200"': 1,
    'operation="getMember",code="404"': 1,
    'operation="other",code="404"': 2,
  })
  expect(await samplesOf('http_request_duration_seconds_count')).toMatchObject({ 'operation="getTiers"': 1 })
})

test('commands are counted by batch', async () => {
  await harness.withdraw({ memberId: await harness.addMember({ available: 10_000 }) })
  expect(await samplesOf('batch_commands_sum')).toEqual({ 'batch="intents"': 1, 'batch="completions"': 1 })
})

test('the process is still measured while the database cannot be read', async () => {
  const readInstallation = () => Promise.reject(new Error('the database is down'))
  const { db, sealer, clock, metrics } = harness
  const context = { db, log: pino({ level: 'silent' }), sealer, now: clock.now, mode: 'sandbox' as const }
  const probes = await buildHealthApp(
    { ...context, metrics: { ...metrics, token: '', readInstallation } },
    { isWorking: () => true },
  )
  const { statusCode, body } = await probes.inject({ url: '/metrics' })
  await probes.close()
  expect(statusCode).toBe(200)
  expect(body).toContain('midmonth_database_up 0\n')
  expect(body).toContain('process_cpu_seconds_total')
})
