import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { stringify } from 'yaml'
import { get, midmonth, newDatabase, type Served, serve, tidyUp } from '../program/program.ts'
import { freePort } from '../servers/free-port.ts'
import { startReceiver } from '../servers/receiver.ts'
import { scrape, token } from './evaluation.ts'
import { alerts, hasPrometheus, promtool, queries, rulesFile } from './prometheus-files.ts'
import { findMember, post } from './requests.ts'

// A real Prometheus scrapes a real service.

let service: Served
let prometheus: ChildProcess
let address: string
let folder: string

beforeAll(async () => {
  if (!hasPrometheus) return
  folder = await mkdtemp(path.join(tmpdir(), 'midmonth-prometheus-'))
  const database = { ...(await newDatabase({ hasDemo: true })), MIDMONTH_METRICS_TOKEN: token }
  service = await serve(database)
  const [partner] = JSON.parse((await midmonth(['partner', 'list', '--json'], database)).stdout)
  await midmonth(['float', 'floor', partner.id, 'GBP', '1000'], database)
  await midmonth(['backup', 'recorded'], database)
  await midmonth(['ledger', 'verify'], database)
  address = await startPrometheus(new URL(service.address).host)
}, 120_000)
afterAll(async () => {
  if (!hasPrometheus) return
  prometheus.kill()
  await once(prometheus, 'close')
  await tidyUp()
  await rm(folder, { recursive: true })
})

/** Panels that are empty while no task is late, without a bank and without replicas. */
const empty = new Set(['Batches by rail and state', 'Lag of replicas', 'Tasks due', 'Age of the oldest due task'])

test.runIf(hasPrometheus)(
  'every query of the dashboard is valid, and has data unless nothing of its kind exists',
  async () => {
    const receiver = await startReceiver()
    await post(service, '/v1/webhooks', { url: receiver.url })
    const memberId = await findMember(service)
    await vi.waitFor(
      async () => {
        // Rates need requests between two scrapes.
        await post(service, '/v1/pay/withdrawals/intent', { memberId, amount: { amount: 1_000, currency: 'GBP' } })
        await get(service, { key: 'unknown' })
        const lacking = await Promise.all(
          queries.map(async query => ((await ask(query.expr)).length > 0 || empty.has(query.title) ? [] : [query])),
        )
        expect(lacking.flat()).toEqual([])
      },
      { timeout: 240_000, interval: 1_000 },
    )
    await receiver.stop()
  },
  300_000,
)

test.runIf(hasPrometheus)(
  'Prometheus loads and evaluates every rule',
  async () => {
    const found = await vi.waitFor(
      async () => {
        const response = await fetch(`${address}/api/v1/rules`)
        const { data } = (await response.json()) as {
          data: { groups: { rules: { health: string; name: string }[] }[] }
        }
        const rules = data.groups.flatMap(each => each.rules)
        expect(rules.filter(({ health }) => health !== 'ok')).toEqual([])
        return rules
      },
      { timeout: 60_000, interval: 500 },
    )
    expect(found.map(({ name }) => name).sort()).toEqual(alerts.map(({ alert }) => alert).sort())
  },
  90_000,
)

test.runIf(hasPrometheus)('promtool finds no fault in what a service exposes', async () => {
  const { text = '' } = await scrape('api-1:8080', service.address)
  // Not in those of the runtime, which prom-client names.
  const own = text.match(/^.*\bmidmonth_.*\n/gm)?.join('') ?? ''
  expect(await promtool(['check', 'metrics'], { input: own })).toBe('')
})

async function startPrometheus(target: string): Promise<string> {
  const port = await freePort()
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [rulesFile],
    scrape_configs: [
      { job_name: 'midmonth', authorization: { credentials: token }, static_configs: [{ targets: [target] }] },
    ],
  }
  const file = path.join(folder, 'prometheus.yaml')
  await writeFile(file, stringify(config))
  const args = [`--config.file=${file}`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`]
  prometheus = spawn('prometheus', args, { stdio: 'ignore' })
  const at = `http://127.0.0.1:${port}`
  const isReady = async () => expect((await fetch(`${at}/-/ready`)).status).toBe(200)
  await vi.waitFor(isReady, { timeout: 60_000, interval: 200 })
  return at
}

/** @throws with the error of Prometheus if the query is not valid */
async function ask(query: string): Promise<unknown[]> {
  const response = await fetch(`${address}/api/v1/query`, { method: 'POST', body: new URLSearchParams({ query }) })
  const { data, error } = (await response.json()) as { data?: { result: unknown[] }; error?: string }
  if (data === undefined) throw new Error(`${query}: ${error}`)
  return data.result
}
