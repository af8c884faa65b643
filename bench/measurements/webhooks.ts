import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { newId } from '../../src/kernel/ids.ts'
import { writeKeys } from '../dataset/dataset.ts'
import { type Employer, seedEmployers, settle } from '../dataset/seed.ts'
import { type Load, sendLoad } from '../load/wrk.ts'
import { atEnd } from '../machine/cleanup.ts'
import { type Server, withClient } from '../machine/postgres.ts'
import { cpuMsOf } from '../machine/processes.ts'
import { operate, type Service, startService, type Where } from '../machine/service.ts'
import { median } from './median.ts'

/** The throughput and cost of webhooks. The receiver runs in this process, on the same cores. */
export type Webhooks = {
  /** The floor: unsigned requests with the same client to the same receiver, in a loop. */
  floor: Rate
  /** One process delivering a backlog to one endpoint, and to 16. */
  one: Rate
  sixteen: Rate
  /** From the commit of an event to the arrival of its first attempt, at a steady rate: alone, and with a backlog. */
  latency: { alone: Latency; besideBacklog: Latency }
  backlog: number
  /** The time to seed the backlog, in one statement for events and one for deliveries. */
  seedSeconds: number
  /** Intents a second with an endpoint, and with the backlog, over intents a second without webhooks; medians of the rounds. */
  hotPath: { withEndpoint: number; withBacklog: number }
}
/** CPU time per delivery: for the floor, of client and receiver together; otherwise of the service and of PostgreSQL. */
type Rate = { perSecond: number; clientMs: number; postgresMs: number | null }
type Latency = { p50Ms: number; p99Ms: number; maxMs: number }

const database = 'bench_webhooks'
const steady = { perSecond: 500, everyMs: 20 }
const arrivalMsMax = 300_000

type Receiver = { url: string; arrivedAt: Map<string, number>; count(): number }

export async function measureWebhooks(
  server: Server,
  where: Omit<Where, 'databaseUrl'>,
  { rounds, seconds, isQuick, backlog }: { rounds: number; seconds: number; isQuick: boolean; backlog: number },
): Promise<Webhooks> {
  const databaseUrl = await server.create(database)
  await operate(['migrate'], { ...where, databaseUrl })
  const names = ['One', 'Sixteen', 'Dead', 'Plain']
  const employers = await seedEmployers(
    databaseUrl,
    names.map((name, index) => ({ name, firstMember: index * 1_000, members: 1_000 })),
  )
  const [one, sixteen, dead, plain] = employers
  if (!one || !sixteen || !dead || !plain) throw new Error('No employers were seeded')
  await settle(databaseUrl)
  const receiver = await startReceiver()
  const service = await startService('product', { ...where, databaseUrl, hasWorker: true })
  const intents = async (employer: Employer) => {
    const keysFile = writeKeys(path.join(where.logs, 'webhooks.keys'), [employer])
    const { firstMember, members: membersPerKey } = employer
    const load: Load = { requests: 'intent', keysFile, firstMember, membersPerKey, firstIntent: 0 }
    const { perSecond } = await sendLoad(service.address, load, { connections: 64, seconds })
    return perSecond
  }
  await intents(plain)

  const events = isQuick ? 2_000 : 10_000
  await sendUnsigned(receiver, 2_000)
  const floor = await measureRate(events, [process.pid], () => sendUnsigned(receiver, events))
  await subscribe(service, one, `${receiver.url}one`)
  for (let index = 0; index < 16; index++) await subscribe(service, sixteen, `${receiver.url}sixteen/${index}`)
  const deliver = async (employer: Employer, count: number, endpoints: number) =>
    await measureRate(count * endpoints, [service.pid, server.postmasterPid], async () => {
      const before = receiver.count()
      await withClient(databaseUrl, client => emit(client, { employer, count }))
      await arrived(receiver, before + count * endpoints)
    })
  // Time for V8 to compile the code, and for autovacuum to count the rows.
  await deliver(one, 2_000, 1)
  await deliver(sixteen, 200, 16)
  await settle(databaseUrl)
  const toOne = await deliver(one, events, 1)
  const toSixteen = await deliver(sixteen, events / 10, 16)
  const steadySeconds = isQuick ? 3 : 20
  const alone = await measureLatency(databaseUrl, { employer: one, seconds: steadySeconds, receiver })
  const intentRates = { without: [] as number[], withEndpoint: [] as number[], withBacklog: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    intentRates.withEndpoint.push(await intents(one))
    await drained(databaseUrl)
    intentRates.without.push(await intents(plain))
  }

  // A port that refuses connections.
  const webhookId = await subscribe(service, dead, 'http://127.0.0.1:1081/')
  const seedingAt = performance.now()
  await fillBacklog(databaseUrl, { employer: dead, webhookId, backlog })
  const seedSeconds = (performance.now() - seedingAt) / 1_000
  await settle(databaseUrl)
  const besideBacklog = await measureLatency(databaseUrl, { employer: one, seconds: steadySeconds, receiver })
  for (let round = 0; round < rounds; round++) intentRates.withBacklog.push(await intents(plain))
  await requireBacklog(databaseUrl, { webhookId, backlog })
  await service.stop()
  await server.drop(database)
  return {
    ...{ floor, one: toOne, sixteen: toSixteen, backlog, seedSeconds, latency: { alone, besideBacklog } },
    hotPath: {
      withEndpoint: median(intentRates.withEndpoint) / median(intentRates.without),
      withBacklog: median(intentRates.withBacklog) / median(intentRates.without),
    },
  }
}

/** @param pids the client's process, and PostgreSQL's if it takes part and is known */
async function measureRate(count: number, pids: (number | undefined)[], act: () => Promise<void>): Promise<Rate> {
  const cpuMs = () => pids.map(pid => (pid === undefined ? undefined : cpuMsOf(pid)))
  const before = cpuMs()
  const startedAt = performance.now()
  await act()
  const perSecond = count / ((performance.now() - startedAt) / 1_000)
  const [clientMs, postgresMs] = cpuMs().map((ms, index) => {
    const earlier = before[index]
    return ms === undefined || earlier === undefined ? null : (ms - earlier) / count
  })
  return { perSecond, clientMs: clientMs ?? 0, postgresMs: postgresMs ?? null }
}

async function startReceiver(): Promise<Receiver> {
  const arrivedAt = new Map<string, number>()
  let count = 0
  const server = createServer((incoming, response) => {
    const id = String(incoming.headers['webhook-id'])
    if (!arrivedAt.has(id)) arrivedAt.set(id, Date.now())
    count++
    incoming.resume().on('end', () => response.end())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/`, arrivedAt, count: () => count }
}

async function sendUnsigned({ url }: Receiver, count: number): Promise<void> {
  const agent = new Agent({ connections: 4, pipelining: 1 })
  const body = JSON.stringify({ data: 'x'.repeat(400) })
  let left = count
  const loop = async () => {
    while (left-- > 0) {
      const response = await request(url, { method: 'POST', dispatcher: agent, body })
      await response.body.dump()
    }
  }
  await Promise.all(Array.from({ length: 4 }, loop))
  await agent.close()
}

async function subscribe({ address }: Service, { key }: Employer, url: string): Promise<string> {
  const response = await fetch(`${address}/v1/webhooks`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ url }),
  })
  const body = (await response.json()) as { id: string }
  if (response.status !== 201) throw new Error(`Creating a webhook endpoint failed: ${JSON.stringify(body)}`)
  return body.id
}

/** Emits events as the program does: committed, without a position in the feed. @returns their ids */
async function emit(
  client: { query(text: string, values: unknown[]): Promise<unknown> },
  { employer: { partnerId }, count }: { employer: Employer; count: number },
): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('event', new Date()))
  await client.query(
    `insert into events (partner_id, id, type, resource_id, sequence, data, created_at)
     select $1, id, 'job.completed', id, 1, '{"jobId": "maj_bench", "status": "Completed"}', now() from unnest($2::text[]) as e (id)`,
    [partnerId, ids],
  )
  return ids
}

async function arrived({ count }: Receiver, wanted: number): Promise<void> {
  const deadline = performance.now() + arrivalMsMax
  while (count() < wanted) {
    if (performance.now() > deadline) throw new Error(`Only ${count()} of ${wanted} deliveries arrived`)
    await sleep(10)
  }
}

async function measureLatency(
  databaseUrl: string,
  { employer, seconds, receiver }: { employer: Employer; seconds: number; receiver: Receiver },
): Promise<Latency> {
  const committedAt = new Map<string, number>()
  await withClient(databaseUrl, async client => {
    const batches = (seconds * 1_000) / steady.everyMs
    const startedAt = performance.now()
    for (let batch = 0; batch < batches; batch++) {
      await sleep(Math.max(0, startedAt + batch * steady.everyMs - performance.now()))
      const ids = await emit(client, { employer, count: (steady.perSecond * steady.everyMs) / 1_000 })
      for (const id of ids) committedAt.set(id, Date.now())
    }
  })
  const deadline = performance.now() + arrivalMsMax
  const missing = () => [...committedAt.keys()].filter(id => !receiver.arrivedAt.has(id)).length
  while (missing() > 0) {
    if (performance.now() > deadline) throw new Error(`${missing()} events did not arrive`)
    await sleep(50)
  }
  // The first second warms up.
  const waits = [...committedAt].slice(steady.perSecond).map(([id, at]) => (receiver.arrivedAt.get(id) ?? 0) - at)
  const sorted = waits.sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) }
}

async function drained(databaseUrl: string): Promise<void> {
  await withClient(databaseUrl, async client => {
    const deadline = performance.now() + arrivalMsMax
    for (;;) {
      const { rowCount } = await client.query(`select from webhook_deliveries where state = 'pending' limit 1`)
      if (rowCount === 0) return
      if (performance.now() > deadline) throw new Error('The deliveries of the load did not finish')
      await sleep(200)
    }
  })
}

async function fillBacklog(
  databaseUrl: string,
  { employer: { partnerId }, webhookId, backlog }: { employer: Employer; webhookId: string; backlog: number },
): Promise<void> {
  await withClient(databaseUrl, async client => {
    // An id begins with its time in ten characters. The time is current, because old events and their deliveries are deleted.
    await client.query(
      `insert into events (partner_id, id, type, resource_id, sequence, data, created_at, position)
       select $1, left((select max(id) from events), 14) || lpad(n::text, 16, '0'), 'job.completed', 'backlog' || n, 1,
              '{"jobId": "maj_bench", "status": "Completed"}', now(), 1000000 + n from generate_series(1, $2::int) n`,
      [partnerId, backlog],
    )
    await client.query(
      `insert into webhook_deliveries (partner_id, endpoint_id, event_id, type, state, created_at, due_at)
       select partner_id, $2, id, type, 'pending', now(), now() from events where partner_id = $1 and resource_id like 'backlog%'`,
      [partnerId, webhookId],
    )
    await client.query('update webhook_endpoints set due_at = now() where id = $1', [webhookId])
  })
}

/** @throws if the backlog has drained, so that the figures are not those of a backlog */
async function requireBacklog(
  databaseUrl: string,
  { webhookId, backlog }: { webhookId: string; backlog: number },
): Promise<void> {
  await withClient(databaseUrl, async client => {
    const { rows } = await client.query<{ count: string }>(
      `select count(*) from webhook_deliveries where endpoint_id = $1 and state = 'pending'`,
      [webhookId],
    )
    if (Number(rows[0]?.count) < backlog) throw new Error('The backlog of the dead endpoint has drained')
  })
}

export function webhooksTable({ floor, one, sixteen, latency, backlog, seedSeconds, hotPath }: Webhooks): string {
  const us = (ms: number) => `${Math.round(ms * 1_000)} µs`
  const rate = ({ perSecond, clientMs, postgresMs }: Rate) =>
    `${Math.round(perSecond)}/s, ${(perSecond / floor.perSecond).toFixed(2)} of the floor; ` +
    `CPU ${us(clientMs)}${postgresMs === null ? '' : `, PostgreSQL ${us(postgresMs)}`}`
  const wait = ({ p50Ms, p99Ms, maxMs }: Latency) => `p50 ${p50Ms} ms, p99 ${p99Ms} ms, most ${maxMs} ms`
  const size = backlog.toLocaleString('en')
  return [
    '### Webhooks',
    '',
    '| Figure | Value |',
    '|---|---|',
    `| floor: requests with the same client, 4 in flight | ${Math.round(floor.perSecond)}/s; CPU with the receiver ${us(floor.clientMs)} |`,
    `| one process delivering to one endpoint | ${rate(one)} |`,
    `| one process delivering to 16 endpoints | ${rate(sixteen)} |`,
    `| commit to first attempt at ${steady.perSecond} events a second | ${wait(latency.alone)} |`,
    `| the same with ${size} pending deliveries of a dead endpoint, seeded in ${Math.round(seedSeconds)} s | ${wait(latency.besideBacklog)} |`,
    `| intents/s with an endpoint, over those without | ${hotPath.withEndpoint.toFixed(2)} |`,
    `| intents/s with the ${size} pending deliveries, over those without | ${hotPath.withBacklog.toFixed(2)} |`,
  ].join('\n')
}
