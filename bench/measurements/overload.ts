import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dataset } from '../dataset/dataset.ts'
import { type Employer, seedEmployer } from '../dataset/seed.ts'
import { type Load, type LoadFigures, type Statuses, sendAndCount, sendLoad } from '../load/wrk.ts'
import { withClient } from '../machine/postgres.ts'
import { cpuMsOf, rssMbOf } from '../machine/processes.ts'
import type { Service } from '../machine/service.ts'

/** The effect of a number of connections of one partner, none of which waits between requests. */
type Flood = LoadFigures & {
  requests: number
  kind: Kind
  connections: number
  statuses: Statuses
  /** Requests a second at the best number of connections. */
  capacity: number
  /** Successful requests a second, as a multiple of the capacity. */
  goodput: number
  /** CPU of the service for each response, refusals among them. */
  serviceCpuMs: number
  rssMb: number
  /**
   * Another partner, which sends five requests a second over connections that it has kept: its latency beforehand and during the
   * flood, and its refusals. `connectedMs` is its latency over a new connection.
   */
  polite: { beforeP99Ms: number; p99Ms: number; connectedMs: number; refused: number; requests: number }
}

export type Overload = { floods: Flood[] }

/** `limited` is `intent` of a partner that may send a tenth of what the service can serve. */
type Kind = 'read' | 'write' | 'intent' | 'limited'

const floodConnections = 2_000
// A request waits for at most two seconds, so a flood of this length sees nearly all responses.
const floodSecondsMin = 8

/** Overloads the product with each kind of request, and checks its goodput and what another partner notices of it. */
export async function measureOverload(
  service: Service,
  dataset: Dataset,
  { databaseUrl, seconds }: { databaseUrl: string; seconds: number },
): Promise<Overload> {
  const { address, pid } = service
  const { one, keysOfOne } = dataset
  const polite = await seedEmployer(databaseUrl, { name: 'Polite', firstMember: 900_000_000, members: 1_000 })
  const loadOf = (requests: Load['requests']): Load => ({
    ...{ requests, keysFile: keysOfOne, firstIntent: 0 },
    ...{ firstMember: one.firstMember, membersPerKey: one.members },
  })
  const floodSeconds = Math.max(seconds, floodSecondsMin)
  const floods: Flood[] = []
  for (const kind of ['read', 'write', 'intent', 'limited'] as const) {
    const load = loadOf(kind === 'limited' ? 'intent' : kind)
    const capacity = await capacityOf(address, load, seconds)
    if (kind === 'limited') await limit(databaseUrl, one, Math.ceil(capacity / 10))
    const agent = new Agent({ keepAlive: true })
    const before = await politeLatencies(agent, address, polite, floodSeconds)
    const cpuBefore = cpuMsOf(pid)
    const [flood, during, connected] = await Promise.all([
      sendAndCount(address, load, { connections: floodConnections, seconds: floodSeconds }),
      // Not before the flood has built up, and not beyond its end.
      sleep(1_000).then(() => politeLatencies(agent, address, polite, floodSeconds - 2)),
      sleep(1_000).then(() => timed(new Agent(), address, { ...kindsOf(polite)[0], key: polite.key })),
    ])
    agent.destroy()
    floods.push({
      ...{ ...flood, kind, capacity, connections: floodConnections, rssMb: rssMbOf(pid) },
      goodput: (flood.statuses.ok / flood.requests) * (flood.perSecond / capacity),
      serviceCpuMs: (cpuMsOf(pid) - cpuBefore) / flood.requests,
      polite: {
        beforeP99Ms: p99Of(before),
        p99Ms: p99Of(during),
        connectedMs: connected.ms,
        refused: during.filter(({ status }) => status >= 300 || status === 0).length,
        requests: during.length,
      },
    })
  }
  return { floods }
}

async function capacityOf(address: string, load: Load, seconds: number): Promise<number> {
  await sendLoad(address, load, { connections: 64, seconds: 1 })
  let capacity = 0
  for (const connections of [64, 128, 256]) {
    const { perSecond, refused } = await sendLoad(address, load, { connections, seconds })
    if (refused === 0) capacity = Math.max(capacity, perSecond)
  }
  return capacity
}

async function limit(databaseUrl: string, { partnerId }: Employer, perSecond: number): Promise<void> {
  const statement = 'update partners set requests_per_second = $2, requests_burst = $2 where id = $1'
  await withClient(databaseUrl, client => client.query(statement, [partnerId, perSecond]))
  // A changed setting takes effect within a second.
  await sleep(1_000)
}

type Sample = { ms: number; status: number }

/** Sends five requests a second, a read, a write and an intent in turn, whether or not earlier ones have been answered. */
async function politeLatencies(agent: Agent, address: string, employer: Employer, seconds: number): Promise<Sample[]> {
  const kinds = kindsOf(employer)
  const samples: Promise<Sample>[] = []
  for (let count = 0; count < seconds * 5; count++) {
    const kind = kinds[count % kinds.length] ?? kinds[0]
    samples.push(timed(agent, address, { ...kind, key: employer.key }))
    await sleep(200)
  }
  return await Promise.all(samples)
}

function kindsOf({ firstMember }: Employer) {
  const memberId = `mem_${String(firstMember).padStart(26, '0')}`
  return [
    { method: 'GET', path: `/v1/members/${memberId}` },
    { method: 'PATCH', path: `/v1/members/${memberId}`, body: { lastName: 'Okafor' } },
    {
      ...{ method: 'POST', path: '/v1/pay/withdrawals/intent' },
      body: { memberId, amount: { amount: 5_000, currency: 'GBP' } },
    },
  ] as const
}

function timed(
  agent: Agent,
  address: string,
  { method, path, body, key }: { method: string; path: string; body?: object; key: string },
): Promise<Sample> {
  const sentAt = performance.now()
  return new Promise(resolve => {
    const end = (status: number) => resolve({ ms: performance.now() - sentAt, status })
    const headers = { 'x-api-key': key, 'content-type': 'application/json' }
    const sent = request(`${address}${path}`, { method, agent, headers }, response => {
      response.resume().on('end', () => end(response.statusCode ?? 0))
    })
    sent.on('error', () => end(0)).end(body === undefined ? undefined : JSON.stringify(body))
  })
}

function p99Of(samples: Sample[]): number {
  const sorted = samples.map(({ ms }) => ms).toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN
}
