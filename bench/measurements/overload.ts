import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dataset } from '../dataset/dataset.ts'
import { type Load, type LoadFigures, type Statuses, sendAndCount, sendLoad } from '../load/wrk.ts'
import { withClient } from '../machine/postgres.ts'
import { rssMbOf } from '../machine/processes.ts'
import type { Service } from '../machine/service.ts'
import { median } from './median.ts'

export type Overload = {
  /** Intents a second at the best number of connections. */
  capacity: number
  floods: Flood[]
  limited: LoadFigures & { statuses: Statuses; requestsPerSecond: number }
}

/** The effect of a number of connections, none of which waits between requests. */
type Flood = LoadFigures & {
  connections: number
  statuses: Statuses
  /** Requests that got any response, as a multiple of the capacity. */
  offered: number
  /**
   * The mean wait of a request, by Little's law. It includes waits that outlast the flood, which the percentiles
   * leave out.
   */
  waitMs: number
  rssMb: number
  recovery: Recovery
}

/** The median of 8 connections before the flood, and the time after it until that median is at most 50 % higher. */
type Recovery = { beforeMs: number; afterMs: number | undefined }

const floodConnections = [1_000, 2_000, 4_000]
// The product must respond within a second, so a flood of this length sees nearly all responses, however late.
const floodSecondsMin = 6
const recoverySecondsMax = 5
const windowMs = 100

/** Overloads the product, and checks its responses and its recovery. */
export async function measureOverload(
  service: Service,
  dataset: Dataset,
  { databaseUrl, seconds }: { databaseUrl: string; seconds: number },
): Promise<Overload> {
  const { one, keysOfOne } = dataset
  const load: Load = {
    ...{ requests: 'intent', keysFile: keysOfOne, firstIntent: 0 },
    ...{ firstMember: one.firstMember, membersPerKey: one.members },
  }
  const { address, pid } = service
  await sendLoad(address, load, { connections: 64, seconds: 1 })
  let capacity = 0
  for (const connections of [64, 128, 256]) {
    const { perSecond, refused } = await sendLoad(address, load, { connections, seconds })
    if (refused === 0) capacity = Math.max(capacity, perSecond)
  }
  const floods: Flood[] = []
  for (const connections of floodConnections) {
    const before = medianOf(await sample(address, dataset, { seconds: 1 }))
    const flood = await sendAndCount(address, load, { connections, seconds: Math.max(seconds, floodSecondsMin) })
    const recovery = { beforeMs: before, afterMs: await recoveryMs(address, dataset, before) }
    floods.push({
      ...{ ...flood, connections, recovery, rssMb: rssMbOf(pid) },
      offered: flood.perSecond / capacity,
      waitMs: (1_000 * connections) / flood.perSecond,
    })
  }
  return { capacity, floods, limited: await measureLimit(address, load, dataset, { databaseUrl, seconds, capacity }) }
}

/** Sends the same load as a partner limited to a tenth of the service's capacity. */
async function measureLimit(
  address: string,
  load: Load,
  { one }: Dataset,
  { databaseUrl, seconds, capacity }: { databaseUrl: string; seconds: number; capacity: number },
): Promise<Overload['limited']> {
  const requestsPerSecond = Math.ceil(capacity / 10)
  const limit = (perSecond: number) =>
    withClient(databaseUrl, client =>
      client.query('update partners set requests_per_second = $2, requests_burst = $2 where id = $1', [
        one.partnerId,
        perSecond,
      ]),
    )
  await limit(requestsPerSecond)
  // A changed setting takes effect within a second.
  await sleep(1_000)
  const loadFigures = await sendAndCount(address, load, { connections: 64, seconds })
  await limit(1_000_000)
  return { ...loadFigures, requestsPerSecond }
}

/** The time until the responses within 100 ms are about as fast as before the flood, and all as expected. */
async function recoveryMs(address: string, dataset: Dataset, beforeMs: number): Promise<number | undefined> {
  const samples = await sample(address, dataset, { seconds: recoverySecondsMax })
  for (let from = 0; from < recoverySecondsMax * 1_000; from += windowMs) {
    const window = samples.filter(({ endMs }) => endMs >= from && endMs < from + windowMs)
    const isRight = window.length > 0 && window.every(({ status }) => status === 201)
    if (isRight && medianOf(window) <= 1.5 * beforeMs) return from + windowMs
  }
  return undefined
}

type Sample = { endMs: number; ms: number; status: number }

/** Creates intents over 8 connections, sequentially on each. */
async function sample(address: string, { one }: Dataset, { seconds }: { seconds: number }): Promise<Sample[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const headers = { 'x-api-key': one.key, 'content-type': 'application/json' }
  const createIntent = () =>
    new Promise<number>((resolve, reject) => {
      const member = one.firstMember + Math.floor(Math.random() * one.members)
      const memberId = `mem_${String(member).padStart(26, '0')}`
      const options = { method: 'POST', agent, headers }
      const sent = request(`${address}/v1/pay/withdrawals/intent`, options, response => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      })
      sent.on('error', reject).end(JSON.stringify({ memberId, amount: { amount: 5_000, currency: 'GBP' } }))
    })
  const startedAt = performance.now()
  const samples: Sample[] = []
  const client = async () => {
    while (performance.now() - startedAt < seconds * 1_000) {
      const sentAt = performance.now()
      // A refused or broken connection is not an response: the service has not recovered yet.
      const status = await createIntent().catch(() => 0)
      const now = performance.now()
      samples.push({ endMs: now - startedAt, ms: now - sentAt, status })
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
  agent.destroy()
  return samples
}

function medianOf(samples: Sample[]): number {
  return median(samples.map(({ ms }) => ms))
}
