import { afterAll, expect, test, vi } from 'vitest'
import { newDatabase, serve, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 60_000 })
afterAll(tidyUp)

const token = 'a-token-for-prometheus'

/** The address at which a process listens, also one without the API. */
function addressIn(log: string): string {
  const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(log) ?? []
  if (address === undefined) throw new Error(`The log names no address: ${log}`)
  return address
}

async function scrape(address: string, authorization?: string) {
  const response = await fetch(`${address}/metrics`, { headers: authorization === undefined ? {} : { authorization } })
  return { status: response.status, text: await response.text() }
}

test('the API serves metrics only if a token is set, and only to those who send it', async () => {
  const database = await newDatabase()
  const closed = await serve(database)
  expect((await scrape(closed.address)).status).toBe(404)
  await closed.stop()
  const service = await serve({ ...database, MIDMONTH_METRICS_TOKEN: token })
  expect((await scrape(service.address)).status).toBe(401)
  const { status, text } = await scrape(service.address, `Bearer ${token}`)
  await service.stop()
  expect(status).toBe(200)
  expect(text).toContain('midmonth_workers_alive 1\n')
  expect(text).toMatch(/^midmonth_task_duration_seconds_count\{.*outcome="done".*\} \d+$/m)
})

test('a worker serves metrics on the port of its health probes, without a token unless one is set', async () => {
  const database = await newDatabase()
  const roles = { api: false, worker: true }
  const open = await serve(database, { roles })
  const { status, text } = await scrape(addressIn(open.log()))
  await open.stop()
  expect(status).toBe(200)
  expect(text).toContain('midmonth_database_connections{pool="operations",state="waiting"} 0\n')
  const closed = await serve({ ...database, MIDMONTH_METRICS_TOKEN: token }, { roles })
  const refused = await scrape(addressIn(closed.log()))
  await closed.stop()
  expect(refused.status).toBe(401)
})
