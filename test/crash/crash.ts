import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { audit } from './auditor.ts'
import { type Asked, live, type Outcome, outcomeOf, type Town } from './clients.ts'
import { createPartners, endCycle } from './partners.ts'
import { createPostgres } from './postgres.ts'
import { keepRunning, operate } from './program.ts'
import { randomOf } from './random.ts'
import { comeToRest } from './rest.ts'
import { type Kills, rage } from './storm.ts'
import { until } from './until.ts'

// Two APIs, two workers and a PostgreSQL are killed again and again, while clients of three partners go on asking until
// they have an answer. Then everything comes to rest, and an auditor compares what the clients were told with what is
// there. The seed gives who is killed when and what clients ask for; what meets what is up to the machine.
const { seed, kills, keeps } = readOptions()
// A request that is on its way when the storm ends has this long to get its answer.
const homewardMsMax = 30_000
const shownMax = 5

console.log(
  `seed ${seed}, ${kills.ofProgram} kills of the program, ${kills.ofPostgres} of PostgreSQL, ${cpus().length} cores`,
)
const folder = path.join(tmpdir(), `openwage-crash-${seed}-${process.pid}`)
const logs = path.join(folder, 'logs')
mkdirSync(folder, { mode: 0o755 })
mkdirSync(logs)

const postgres = await createPostgres({ folder, logs })
await postgres.start()
const databaseUrl = postgres.url
await operate(databaseUrl, ['migrate'], { DATABASE_OWNER_URL: postgres.ownerUrl })
const processes = (['API', 'worker'] as const).flatMap(role =>
  [1, 2].map(number => keepRunning(`${role}-${number}`, role, { databaseUrl, logs })),
)
let isSound = false
try {
  isSound = await crash()
} finally {
  await Promise.all(processes.map(each => each.stop()))
  await postgres.stop()
  if (isSound && !keeps) rmSync(folder, { recursive: true })
  else console.log(`seed ${seed}: logs and data are in ${folder}`)
}
process.exit(isSound ? 0 : 1)

async function crash(): Promise<boolean> {
  const laps = [Date.now()]
  const log: Asked[] = []
  const kills = await weather(log).finally(() => {
    writeFileSync(path.join(logs, 'clients.jsonl'), log.map(asked => `${JSON.stringify(asked)}\n`).join(''))
  })
  laps.push(Date.now())
  await Promise.all(processes.map(each => each.stop()))
  const restless = await comeToRest({ databaseUrl, logs })
  laps.push(Date.now())
  const left = processes
    .filter(each => each.leftByItself() > 0)
    .map(({ name }) => `${name} ended by itself; see its log`)
  // The program's own check has its say, too: where only one of the two finds something, the other is wrong.
  const verify = await operate(databaseUrl, ['ledger', 'verify']).then(
    () => [],
    error => [`openwage ledger verify: ${error.stdout} ${error.stderr}`],
  )
  const findings = { ...(await audit(databaseUrl, log)), verify, 'not at rest': restless, left }
  laps.push(Date.now())
  print({ log, kills, findings, seconds: laps.slice(1).map((lap, index) => (lap - (laps[index] ?? 0)) / 1_000) })
  return Object.values(findings).every(found => found.length === 0)
}

/** The storm, with the clients in it. @returns what was killed, when the last client has gone home */
async function weather(log: Asked[]): Promise<Kills> {
  await until(() => processes.every(each => each.isReady()), 'everything is running')
  const shops = await createPartners(databaseUrl, processes[0]?.address() ?? 'nowhere')
  let serial = 0
  let endedAt: number | undefined
  const town: Town = {
    addresses: () => processes.flatMap(each => each.address() ?? []),
    nextSerial: () => ++serial,
    isOver: () => endedAt !== undefined,
    hasGoneHome: () => endedAt !== undefined && Date.now() > endedAt + homewardMsMax,
    note: asked => log.push(asked),
  }
  const clients = shops.flatMap((shop, shopIndex) =>
    Array.from({ length: shop.clients }, (_, index) => {
      const name = `client-${shopIndex + 1}-${index + 1}`
      return live(name, shop, town, randomOf(seed, name))
    }),
  )
  // One cycle ends early, one midway, one late.
  const closings = shops.map(async (shop, index) => {
    await sleep(randomOf(seed, `cycle ${index}`).between(index, index + 1) * kills.ofProgram * 700)
    await insist(
      () => endCycle(databaseUrl, shop),
      () => town.isOver(),
    )
  })
  try {
    return await rage(kills, { processes, postgres, random: randomOf(seed, 'storm') })
  } finally {
    endedAt = Date.now()
    await Promise.all([...clients, ...closings])
  }
}

type Report = { log: Asked[]; kills: Kills; findings: Record<string, string[]>; seconds: number[] }

function print({ log, kills, findings, seconds }: Report): void {
  const count = (holds: (asked: Asked) => boolean) => log.filter(holds).length
  const [storm, rest, audit] = seconds.map(Math.round)
  const rows = {
    seconds: `${storm} of storm, ${rest} until everything was at rest, ${audit} of audit`,
    kills: Object.entries(kills)
      .map(([victim, times]) => `${victim} ${times}`)
      .join(', '),
    requests: `${log.length}, of which ${count(({ attempts }) => attempts > 1)} were asked more than once`,
    acknowledged: `${count(isA('acknowledged'))}, of which ${count(({ replayed }) => replayed)} were done by an attempt that broke`,
    refused: count(isA('refused')),
    unknown: count(isA('unknown')),
    'status 500': log.reduce((sum, { faults }) => sum + faults, 0),
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

function isA(outcome: Outcome): (asked: Asked) => boolean {
  return asked => outcomeOf(asked) === outcome
}

// An operator whose command breaks gives it again.
async function insist(command: () => Promise<void>, isTooLate: () => boolean): Promise<void> {
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
