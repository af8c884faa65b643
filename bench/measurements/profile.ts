import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { type Dataset, loadOf } from '../dataset/dataset.ts'
import { type WorkloadName, workloads } from '../load/workloads.ts'
import { sendLoad } from '../load/wrk.ts'
import type { Server } from '../machine/postgres.ts'
import { cpuMsOf } from '../machine/processes.ts'
import { startService, type Where } from '../machine/service.ts'
import type { Options } from '../options.ts'
import { firstIntentToComplete, preparePending } from './measure.ts'
import { warmUp } from './warm-up.ts'

/** CPU of the service per request, by layer, in microseconds. */
export type Profile = { workload: WorkloadName; connections: number; layers: ReadonlyMap<string, number> }

/** What a CPU profile of V8 holds that is read here. Source: the DevTools protocol, Profiler.Profile. */
type V8Profile = {
  nodes: { id: number; callFrame: { functionName: string; url: string } }[]
  /** Microseconds of the monotonic clock. */
  startTime: number
  samples: number[]
  timeDeltas: number[]
}

const measuredWorkloads: WorkloadName[] = ['intent', 'complete']
const measuredConnections = [64, 256]
// More than a service completes in the measured seconds.
const pendingMax = 60_000

/** Measures where the service spends its CPU time, each workload and number of connections in its own process. */
export async function measureProfiles(
  server: Server,
  dataset: Dataset,
  { where, options }: { where: Omit<Where, 'databaseUrl'>; options: Options },
): Promise<Profile[]> {
  const found: Profile[] = []
  for (const workload of measuredWorkloads) {
    for (const connections of measuredConnections) {
      const name = `bench_profile_${workload}_${connections}`
      const folder = path.join(where.logs, name)
      mkdirSync(folder)
      const databaseUrl = await server.create(name, { template: dataset.template })
      const settings = { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder} --cpu-prof-interval=1000` }
      const service = await startService('product', { ...where, databaseUrl, settings })
      const deployment = { service, databaseUrl, employer: dataset.one, nextIntent: firstIntentToComplete }
      await warmUp(deployment, { dataset, completes: true })
      const firstIntent = await preparePending(deployment, workloads[workload], pendingMax)
      const cpuBefore = cpuMsOf(service.pid)
      const from = monotonicMicroseconds()
      const load = { ...loadOf(workloads[workload], dataset), firstIntent }
      const { requests } = await sendLoad(service.address, load, { connections, seconds: options.seconds })
      const until = monotonicMicroseconds()
      const cpuPerRequest = ((cpuMsOf(service.pid) - cpuBefore) * 1_000) / requests
      await service.stop()
      await server.drop(name)
      const layers = layersOf(largestProfileIn(folder), { from, until, cpuPerRequest })
      found.push({ workload, connections, layers })
      console.log(`profiled ${workload} at ${connections} connections`)
    }
  }
  return found
}

function monotonicMicroseconds(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}

/** That of the main thread: the others wait nearly all the time. */
function largestProfileIn(folder: string): V8Profile {
  const files = readdirSync(folder).map(name => path.join(folder, name))
  const [largest = ''] = files.toSorted((a, b) => statSync(b).size - statSync(a).size)
  return JSON.parse(readFileSync(largest, 'utf8'))
}

/** Splits the measured CPU time as the samples fall: a sample lasts until the next one, even while another process has the core. */
function layersOf(
  { nodes, startTime, samples, timeDeltas }: V8Profile,
  { from, until, cpuPerRequest }: { from: number; until: number; cpuPerRequest: number },
): Map<string, number> {
  const layerOfNode = new Map(nodes.map(({ id, callFrame }) => [id, layerOf(callFrame)]))
  const counts = new Map<string, number>()
  let all = 0
  let at = startTime
  for (const [index, id] of samples.entries()) {
    at += timeDeltas[index] ?? 0
    const layer = layerOfNode.get(id)
    if (at < from || at > until || layer === undefined) continue
    counts.set(layer, (counts.get(layer) ?? 0) + 1)
    all += 1
  }
  return new Map([...counts].map(([layer, count]) => [layer, (cpuPerRequest * count) / all]))
}

/** The layer of a function; undefined while the process waits. */
function layerOf({ functionName, url }: V8Profile['nodes'][number]['callFrame']): string | undefined {
  if (functionName === '(idle)' || functionName === '(root)') return undefined
  const ours = /\/src\/([\w-]+)(?:\/([\w-]+)(?=\/))?/.exec(url)
  const dependency = /node_modules\/(?:@[\w-]+\/)?([\w-]+)/.exec(url)?.[1]
  if (functionName === '(garbage collector)') return 'garbage collection'
  if (dependency !== undefined) return dependencies[dependency] ?? `other dependencies`
  if (ours !== null) return ours[1] === 'http' && ours[2] !== undefined ? `src/http/${ours[2]}` : `src/${ours[1]}`
  if (/^(write|shutdown|readStart|readStop)/.test(functionName) && url === '') return 'system calls of sockets'
  if (/^node:(_http|internal\/http)/.test(url)) return 'node:http'
  if (/^node:(net|internal\/(stream_base|streams)|stream)/.test(url)) return 'node:net and node:stream'
  if (url.startsWith('node:internal/crypto')) return 'node:crypto'
  if (url.startsWith('node:')) return 'the rest of Node: timers, events, promises, buffers'
  if (/^validate\d*$/.test(functionName)) return 'validation'
  return 'native code: parsing of HTTP and JSON, collections, strings'
}

const dependencies: Record<string, string> = {
  fastify: 'Fastify',
  'find-my-way': 'Fastify',
  avvio: 'Fastify',
  ajv: 'validation',
  pg: 'PostgreSQL driver',
  'pg-protocol': 'PostgreSQL driver',
  'pg-types': 'PostgreSQL driver',
  'pg-pool': 'PostgreSQL driver',
  kysely: 'SQL (kysely)',
  pino: 'log',
  'sonic-boom': 'log',
}
