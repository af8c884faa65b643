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

// Loses the primary of a cluster in four ways, each several times, while clients send requests and retry them: the cluster of
// deploy/ha on three machines that are network namespaces, with one API behind HAProxy, and one API and the worker with all hosts
// in DATABASE_URL. After each kind of loss all work is drained and audited. Nothing may be lost, duplicated or invented, an
// outage is a 503 with retry-after, and writes are back within the lease of Patroni and three seconds.

type Fault = {
  strike(primary: Machine, cluster: Cluster): Promise<void>
  heal(primary: Machine, cluster: Cluster): void
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
        areInTime = (await strike(name, { fault, round, pulses, log, receiver })) && areInTime
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

/** One round: the primary is lost, another one takes over, and the machine comes back. @returns whether writes were back in time */
async function strike(
  name: string,
  {
    fault,
    round,
    pulses,
    log,
    receiver,
  }: { fault: Fault; round: number; pulses: Pulse[]; log: RequestRecord[]; receiver: { requests(): number } },
): Promise<boolean> {
  await cluster.whole()
  await sleep(limits.steadyMs)
  const primary = await cluster.primary()
  const before = log.length
  const at = Date.now()
  await fault.strike(primary, cluster)
  const deadline = at + limits.roundMsMax
  const isLate = () => Date.now() > deadline
  const successor = async () => await cluster.primary().catch(() => primary)
  while ((await successor()) === primary && !isLate()) await sleep(100)
  const promotedAt = Date.now()
  while (!pulses.every(each => each.hasBeatenSince(promotedAt)) && !isLate()) await sleep(50)
  const deliveries = receiver.requests()
  while (receiver.requests() <= deliveries && !isLate()) await sleep(50)
  const workerMs = Date.now() - at
  await sleep(limits.steadyMs)
  const pauses = pulses.map(each => ({ way: each.way, seconds: each.longestPauseSince(at) / 1_000 }))
  const secondsMax = cluster.ttlSeconds + limits.promotionSeconds
  const isInTime = !isLate() && pauses.every(({ seconds }) => seconds <= secondsMax)
  const during = log.slice(before)
  const sum = (of: (record: RequestRecord) => number) => during.reduce((total, record) => total + of(record), 0)
  console.log(
    `${name} ${round}: ${primary.name} → ${(await successor()).name}; writes back after ` +
      pauses.map(({ way, seconds }) => `${seconds.toFixed(1)} s (${way})`).join(', ') +
      ` of at most ${secondsMax} s; worker ${(workerMs / 1_000).toFixed(1)} s; 503 ${sum(({ unavailable }) => unavailable)}, ` +
      `other server errors ${sum(({ serverErrors }) => serverErrors)}${isInTime ? '' : '  TOO LATE'}`,
  )
  fault.heal(primary, cluster)
  return isInTime
}

/** Finishes all work, and audits the database against what the clients were told. */
async function hasLostNothing(scene: Scene): Promise<boolean> {
  await cluster.whole()
  const findings = await settle(scene)
  const { counts, first } = findingsInWords(findings)
  const { log } = scene
  const serverErrors = log.reduce((total, record) => total + record.serverErrors, 0)
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
