import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { RequestRecord } from '../../crash/clients.ts'
import { keepRunning, type Process, runCommand } from '../../crash/program.ts'
import { randomOf } from '../../crash/random.ts'
import { startReceiver } from '../../crash/receiver.ts'
import { findingsInWords, type Scene, settle, startClients } from '../../crash/scene.ts'
import { type Cluster, createCluster } from './cluster.ts'
import type { Machine } from './machines.ts'
import { Pulse } from './pulse.ts'
import { missingRequirements } from './requirements.ts'

// Loses the primary of a cluster in four ways, and the majority of etcd, each several times, while clients send requests and retry
// them: the cluster of deploy/ha on three machines that are network namespaces, with one API behind HAProxy, and one API and the
// worker with all hosts in DATABASE_URL. After each kind of loss all work is drained and audited. Nothing may be lost, duplicated or
// invented, an outage is a 503 with retry-after, and writes are back within the lease of Patroni and three seconds: after the loss of
// the primary, or after etcd has a majority again.

type Fault = {
  strike(primary: Machine, cluster: Cluster): Promise<void>
  heal(primary: Machine, cluster: Cluster): void
  /** Whether nothing can be written until it is healed. */
  isOutage?: true
}

const faults: Record<string, Fault> = {
  kill: { strike: primary => primary.kill(), heal: (primary, cluster) => cluster.start(primary) },
  freeze: { strike: async primary => primary.freeze(), heal: primary => primary.thaw() },
  switchover: {
    async strike(primary, cluster) {
      const { name } = await cluster.syncStandby()
      await cluster.patronictl('switchover', '--master', primary.name, '--candidate', name, '--force')
    },
    heal: () => undefined,
  },
  cut: { strike: async primary => primary.cut(), heal: primary => primary.reconnect() },
  majority: {
    async strike(_, { etcd }) {
      for (const machine of etcd.slice(1)) machine.cut()
    },
    heal(_, { etcd }) {
      for (const machine of etcd.slice(1)) machine.reconnect()
    },
    isOutage: true,
  },
}

const limits = {
  // Choosing a standby, promoting it, and noticing it.
  promotionSeconds: 3,
  roundMsMax: 120_000,
  steadyMs: 5_000,
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    fault: { type: 'string', multiple: true, default: Object.keys(faults) },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
    keep: { type: 'boolean', default: false },
  },
})
const seed = Number(values.seed)
const rounds = Number(values.rounds)
// Without a round, nothing is lost.
if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds ${values.rounds}: use a whole number from 1`)

const missing = missingRequirements()
if (missing !== undefined) {
  console.error(missing)
  process.exit(2)
}
await insideOwnNetwork()
const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-failover-'))
const logs = path.join(folder, 'logs')
mkdirSync(logs)
// PostgreSQL runs as another user.
chmodSync(folder, 0o755)
const cluster = await createCluster({ folder, logs })
const backMsMax = (cluster.ttlSeconds + limits.promotionSeconds) * 1_000
let isSound = true
try {
  for (const name of values.fault) isSound = (await drill(name)) && isSound
} finally {
  if (isSound && !values.keep) rmSync(folder, { recursive: true })
  else console.log(`seed ${seed}: logs and data are in ${folder}`)
}
process.exit(isSound ? 0 : 1)

/** Runs all rounds of one fault, on a new database. */
async function drill(name: string): Promise<boolean> {
  const fault = faults[name]
  if (fault === undefined) throw new Error(`Unknown fault ${name}; use ${Object.keys(faults).join(', ')}`)
  const database = `midmonth_${name}`
  await cluster.createDatabase(database)
  const byProxy = cluster.addressOf('app', database, 'proxy')
  const byHosts = cluster.addressOf('app', database, 'hosts')
  await runCommand(byHosts, ['migrate'], { DATABASE_OWNER_URL: cluster.addressOf('owner', database, 'hosts') })
  const keep = (id: string, role: Process['role'], databaseUrl: string) =>
    keepRunning(`${name}-${id}`, role, { databaseUrl, logs })
  const apis = { proxy: keep('proxy', 'API', byProxy), hosts: keep('hosts', 'API', byHosts) }
  const processes = [...Object.values(apis), keep('worker', 'worker', byHosts)]
  const receiver = await startReceiver(randomOf(seed, 'receiver'))
  const log: RequestRecord[] = []
  const scene = { databaseUrl: byProxy, logs, seed, processes, receiver, log }
  try {
    const { partners, simulation, end } = await startClients(scene)
    const [partner] = partners
    if (partner === undefined) throw new Error('There is no partner')
    const pulses = Object.entries(apis).map(([way, api]) => new Pulse(way, { api, partner, simulation }))
    let areInTime = true
    try {
      for (let round = 1; round <= rounds; round++)
        areInTime = (await playRound(name, { fault, round, pulses, log, receiver })) && areInTime
    } finally {
      await Promise.all([end(), ...pulses.map(each => each.ended)])
    }
    return (await hasLostNothing(scene)) && areInTime
  } finally {
    writeFileSync(path.join(logs, `${name}.jsonl`), log.map(record => `${JSON.stringify(record)}\n`).join(''))
    await Promise.all(processes.map(each => each.stop()))
    await receiver.stop()
  }
}

type Round = { fault: Fault; round: number; pulses: Pulse[]; log: RequestRecord[]; receiver: { requests(): number } }

/** One round of a fault, on a cluster that is whole. @returns whether writes were back in time */
async function playRound(name: string, played: Round): Promise<boolean> {
  await cluster.whole()
  await sleep(limits.steadyMs)
  const before = played.log.length
  const { said, isInTime } = await (played.fault.isOutage ? outlast(played) : strike(played))
  const during = played.log.slice(before)
  console.log(
    `${name} ${played.round}: ${said}; 503 ${sumOf(during, 'unavailable')}, ` +
      `other server errors ${sumOf(during, 'serverErrors')}${isInTime ? '' : '  TOO LATE'}`,
  )
  return isInTime
}

/** The primary is lost, another one takes over, and the machine comes back. */
async function strike({ fault, pulses, receiver }: Round): Promise<{ said: string; isInTime: boolean }> {
  const primary = await cluster.primary()
  const at = Date.now()
  await fault.strike(primary, cluster)
  const isLate = lateAfter(at)
  const successor = async () => await cluster.primary().catch(() => primary)
  while ((await successor()) === primary && !isLate()) await sleep(100)
  const workerMs = (await untilWorking({ pulses, receiver, since: Date.now(), isLate })) - at
  await sleep(limits.steadyMs)
  const pauses = pulses.map(each => ({ way: each.way, ms: each.longestPauseSince(at) }))
  const said = `${primary.name} → ${(await successor()).name}; ${backInWords(pauses, workerMs)}`
  const isInTime = !isLate() && pauses.every(({ ms }) => ms <= backMsMax)
  fault.heal(primary, cluster)
  return { said, isInTime }
}

/** Writes end with a fault, are refused while it lasts, and are back once it is healed. */
async function outlast({ fault, pulses, log, receiver }: Round): Promise<{ said: string; isInTime: boolean }> {
  const primary = await cluster.primary()
  const struckAt = Date.now()
  await fault.strike(primary, cluster)
  const isEndless = lateAfter(struckAt)
  const areRefused = () => !pulses.some(each => each.hasBeatenSince(Date.now() - limits.steadyMs))
  while (!areRefused() && !isEndless()) await sleep(100)
  const refusedAt = Date.now()
  const unavailableBefore = sumOf(log, 'unavailable')
  await sleep(limits.steadyMs)
  // A primary without a lease must not acknowledge anything, and says so.
  const wasRefused =
    !pulses.some(each => each.hasBeatenSince(refusedAt)) && sumOf(log, 'unavailable') > unavailableBefore
  fault.heal(primary, cluster)
  const at = Date.now()
  const isLate = lateAfter(at)
  const workerMs = (await untilWorking({ pulses, receiver, since: at, isLate })) - at
  const pauses = pulses.map(each => ({ way: each.way, ms: each.firstBeatAfter(at) }))
  const refused = wasRefused ? 'writes refused' : 'WRITES NOT REFUSED'
  const said = `${refused} after ${((refusedAt - struckAt) / 1_000).toFixed(1)} s; healed; ${backInWords(pauses, workerMs)}`
  return { said, isInTime: wasRefused && !isLate() && pauses.every(({ ms }) => ms <= backMsMax) }
}

function lateAfter(at: number): () => boolean {
  return () => Date.now() > at + limits.roundMsMax
}

/** Waits until each API and the worker write. @returns when they did, or it was too late */
async function untilWorking({
  pulses,
  receiver,
  since,
  isLate,
}: Pick<Round, 'pulses' | 'receiver'> & { since: number; isLate: () => boolean }): Promise<number> {
  while (!pulses.every(each => each.hasBeatenSince(since)) && !isLate()) await sleep(50)
  const deliveries = receiver.requests()
  while (receiver.requests() <= deliveries && !isLate()) await sleep(50)
  return Date.now()
}

function backInWords(pauses: { way: string; ms: number }[], workerMs: number): string {
  const each = pauses.map(({ way, ms }) => `${(ms / 1_000).toFixed(1)} s (${way})`).join(', ')
  return `writes back after ${each} of at most ${backMsMax / 1_000} s; worker ${(workerMs / 1_000).toFixed(1)} s`
}

function sumOf(records: readonly RequestRecord[], count: 'unavailable' | 'serverErrors'): number {
  return records.reduce((total, record) => total + record[count], 0)
}

/** Finishes all work, and audits the database against what the clients were told. */
async function hasLostNothing(scene: Scene): Promise<boolean> {
  await cluster.whole()
  const findings = await settle(scene)
  const { counts, first } = findingsInWords(findings)
  const { log } = scene
  const serverErrors = sumOf(log, 'serverErrors')
  const acknowledged = log.filter(({ answers: [answer] }) => answer !== undefined && answer.status < 300).length
  console.log(
    `${log.length} requests, ${acknowledged} acknowledged, ${serverErrors} server errors: ` +
      counts.map(([kind, count]) => `${kind} ${count}`).join(', '),
  )
  for (const each of first) console.log(each)
  if (acknowledged === 0) console.log('no request was acknowledged, so nothing was tested')
  return acknowledged > 0 && serverErrors === 0 && first.length === 0
}

/** Runs this program again as root of network and process namespaces, which end with it. */
async function insideOwnNetwork(): Promise<void> {
  if (process.env.DRILL_NAMESPACE !== undefined) return
  const namespaces = ['--net', '--pid', '--fork', '--kill-child', '--mount-proc']
  // The shell waits for orphans: Patroni takes a zombie for a running PostgreSQL.
  const program = ['sh', '-c', '"$@" & wait $!', 'sh', process.execPath, ...process.argv.slice(1)]
  const { status } = spawnSync('unshare', [...namespaces, ...program], {
    stdio: 'inherit',
    env: { ...process.env, DRILL_NAMESPACE: '1' },
  })
  process.exit(status ?? 1)
}
