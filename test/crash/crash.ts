import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { audit } from './auditor.ts'
import { type Outcome, outcomeOf, type RequestRecord, runClient, type Simulation } from './clients.ts'
import { drain } from './drain.ts'
import { createPartners, endCycle } from './partners.ts'
import { createPostgres } from './postgres.ts'
import { keepRunning, runCommand } from './program.ts'
import { randomOf } from './random.ts'
import { startReceiver, subscribe } from './receiver.ts'
import { type Kills, killRepeatedly } from './storm.ts'
import { until } from './until.ts'

// Repeatedly kills two APIs, two workers and a PostgreSQL while clients of three partners send requests and retry them.
// Then drains all work, and audits the database against the responses that the clients and the webhooks that a receiver got. The seed determines the
// kills and the requests; how they interleave depends on the machine.
const { seed, kills, keeps } = readOptions()
// How long clients may go on retrying after the last kill.
const graceMsMax = 30_000
const shownMax = 5

console.log(
  `seed ${seed}: ${kills.ofProgram} kills of Openwage, ${kills.ofPostgres} of PostgreSQL, ${cpus().length} cores`,
)
const folder = path.join(tmpdir(), `openwage-crash-${seed}-${process.pid}`)
const logs = path.join(folder, 'logs')
mkdirSync(folder, { mode: 0o755 })
mkdirSync(logs)

const postgres = await createPostgres({ folder, logs })
await postgres.start()
const databaseUrl = postgres.url
await runCommand(databaseUrl, ['migrate'], { DATABASE_OWNER_URL: postgres.ownerUrl })
const processes = (['API', 'worker'] as const).flatMap(role =>
  [1, 2].map(number => keepRunning(`${role}-${number}`, role, { databaseUrl, logs })),
)
const receiver = await startReceiver(randomOf(seed, 'receiver'))
let isSound = false
try {
  isSound = await crash()
} finally {
  await Promise.all(processes.map(each => each.stop()))
  await postgres.stop()
  await receiver.stop()
  if (isSound && !keeps) rmSync(folder, { recursive: true })
  else console.log(`seed ${seed}: logs and data are in ${folder}`)
}
process.exit(isSound ? 0 : 1)

async function crash(): Promise<boolean> {
  const laps = [Date.now()]
  const log: RequestRecord[] = []
  const kills = await runStorm(log).finally(() => {
    writeFileSync(path.join(logs, 'clients.jsonl'), log.map(record => `${JSON.stringify(record)}\n`).join(''))
  })
  laps.push(Date.now())
  await Promise.all(processes.map(each => each.stop()))
  const unfinished = await drain({ databaseUrl, logs })
  laps.push(Date.now())
  const exited = processes
    .filter(each => each.unexpectedExits() > 0)
    .map(({ name }) => `${name} exited unexpectedly; see its log`)
  // The product's own check runs as well. If only one of the two finds an error, the other has a bug.
  const verify = await runCommand(databaseUrl, ['ledger', 'verify']).then(
    () => [],
    error => [`openwage ledger verify: ${error.stdout} ${error.stderr}`],
  )
  const findings = { ...(await audit(databaseUrl, log, receiver.accepted)), verify, unfinished, exited }
  laps.push(Date.now())
  print({ log, kills, findings, seconds: laps.slice(1).map((lap, index) => (lap - (laps[index] ?? 0)) / 1_000) })
  return Object.values(findings).every(found => found.length === 0)
}

/** Kills processes while the clients run, and waits for the last client. @returns the number of kills */
async function runStorm(log: RequestRecord[]): Promise<Kills> {
  await until(() => processes.every(each => each.isReady()), 'all processes are ready')
  const partners = await createPartners(databaseUrl, processes[0]?.address() ?? 'nowhere')
  for (const partner of partners) await subscribe(processes[0]?.address() ?? 'nowhere', partner, receiver.url)
  let serial = 0
  let endedAt: number | undefined
  const simulation: Simulation = {
    addresses: () => processes.flatMap(each => each.address() ?? []),
    nextSerial: () => ++serial,
    isOver: () => endedAt !== undefined,
    hasStopped: () => endedAt !== undefined && Date.now() > endedAt + graceMsMax,
    add: record => log.push(record),
  }
  const clients = partners.flatMap((partner, partnerIndex) =>
    Array.from({ length: partner.clients }, (_, index) => {
      const name = `client-${partnerIndex + 1}-${index + 1}`
      return runClient(name, partner, simulation, randomOf(seed, name))
    }),
  )
  // One partner's cycle ends early, one's midway, one's late.
  const closings = partners.map(async (partner, index) => {
    await sleep(randomOf(seed, `cycle ${index}`).between(index, index + 1) * kills.ofProgram * 700)
    await retryUntil(
      () => endCycle(databaseUrl, partner),
      () => simulation.isOver(),
    )
  })
  try {
    return await killRepeatedly(kills, { processes, postgres, random: randomOf(seed, 'storm') })
  } finally {
    endedAt = Date.now()
    await Promise.all([...clients, ...closings])
  }
}

type Report = { log: RequestRecord[]; kills: Kills; findings: Record<string, string[]>; seconds: number[] }

function print({ log, kills, findings, seconds }: Report): void {
  const count = (holds: (record: RequestRecord) => boolean) => log.filter(holds).length
  const [storm, drained, audit] = seconds.map(Math.round)
  const rows = {
    seconds: `${storm} killing, ${drained} draining, ${audit} auditing`,
    kills: Object.entries(kills)
      .map(([victim, times]) => `${victim} ${times}`)
      .join(', '),
    requests: `${log.length}, of which ${count(({ attempts }) => attempts > 1)} were retried`,
    acknowledged: `${count(isA('acknowledged'))}, of which ${count(({ replayed }) => replayed)} by an attempt without a response`,
    refused: count(isA('refused')),
    unknown: count(isA('unknown')),
    webhooks: `${receiver.accepted.size} events accepted, in ${receiver.requests()} requests`,
    'status 500': log.reduce((sum, { serverErrors }) => sum + serverErrors, 0),
    ...Object.fromEntries(Object.entries(findings).map(([kind, found]) => [kind, found.length])),
  }
  console.log(
    Object.entries(rows)
      .map(([name, value]) => `${name.padEnd(14)}${value}`)
      .join('\n'),
  )
  for (const [kind, found] of Object.entries(findings))
    for (const each of found.slice(0, shownMax)) console.log(`${kind}: ${each}`)
}

function isA(outcome: Outcome): (record: RequestRecord) => boolean {
  return record => outcomeOf(record) === outcome
}

// Retries an operator command that fails because of a kill.
async function retryUntil(command: () => Promise<void>, isTooLate: () => boolean): Promise<void> {
  for (;;) {
    const isLast = isTooLate()
    try {
      return await command()
    } catch (error) {
      if (isLast) throw error
      await sleep(500)
    }
  }
}

function readOptions(): { seed: number; kills: { ofProgram: number; ofPostgres: number }; keeps: boolean } {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
      kills: { type: 'string', default: '25' },
      keep: { type: 'boolean', default: false },
    },
  })
  const [seed, ofProgram] = [values.seed, values.kills].map(Number)
  if (!Number.isSafeInteger(seed) || seed === undefined || !ofProgram || !Number.isSafeInteger(ofProgram))
    throw new Error('usage: node test/crash/crash.ts [--seed N] [--kills N] [--keep]')
  return { seed, kills: { ofProgram, ofPostgres: Math.ceil((ofProgram * 2) / 5) }, keeps: values.keep }
}
