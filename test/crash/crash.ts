import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { addressAtCoordinator, citusUrl, createOnNodes, dropDistributed } from '../harness/citus.ts'
import { createPostgres, type Postgres } from '../servers/postgres.ts'
import { type Bank, type BankBooks, startBank } from './bank.ts'
import { type Outcome, outcomeOf, type RequestRecord } from './clients.ts'
import { tasks } from './drain.ts'
import { endCycle } from './partners.ts'
import { keepRunning, runCommand } from './program.ts'
import { randomOf } from './random.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import { type AllFindings, findingsInWords, type Scene, settle, startClients } from './scene.ts'
import { killAtFiles, killRepeatedly } from './storm.ts'
import { until } from './until.ts'

// Repeatedly kills two APIs, two workers and PostgreSQL while clients of three partners send requests and retry them.
// Then drains all work, and audits the database against the clients' responses and the received webhooks. The seed determines
// the kills and the requests; their interleaving depends on the machine.
//
// Runs twice: first the simulated bank pays, then a bank that exchanges files. On the Citus of MIDMONTH_TEST_CITUS_URL, only our
// processes are killed.
const { seed, kills, keeps, banks } = readOptions()
// The program ignores a file for a minute, in case it is still being written, so with files every clock runs ahead of the disk's.
const aheadMs = 120_000
const pokeMs = 250
// How long to wait for another file event at which to kill the workers.
const aimedMsMax = 20_000

let areSound = true
for (const bank of banks) areSound = (await run(bank)) && areSound
process.exit(areSound ? 0 : 1)

type Stage = Scene & {
  kills: { ofProgram: number; ofPostgres: number; atFiles: number }
  postgres: Postgres | undefined
  files: { bank: Bank; folder: string } | undefined
}

async function run(payer: Payer): Promise<boolean> {
  const isFiles = payer === 'files'
  // The second run needs fewer, since most of its kills are aimed.
  const share = isFiles ? 6 : 1
  const atFiles = isFiles ? Math.ceil(kills / 2) : 0
  const { ofProgram, ofPostgres } = {
    ofProgram: Math.ceil(kills / share),
    // Other programs may use the servers of Citus.
    ofPostgres: citusUrl === undefined ? Math.ceil((kills * 2) / 5 / share) : 0,
  }
  console.log(
    `seed ${seed}, ${isFiles ? 'a bank that exchanges files' : 'the simulated bank'}: ${ofProgram} kills of Midmonth, ` +
      `${ofPostgres} of PostgreSQL${isFiles ? `, up to ${atFiles} at files` : ''}, ${cpus().length} cores`,
  )
  const folder = path.join(tmpdir(), `midmonth-crash-${payer}-${seed}-${process.pid}`)
  const logs = path.join(folder, 'logs')
  mkdirSync(folder, { mode: 0o755 })
  mkdirSync(logs)

  const database = await (citusUrl === undefined ? createOnPostgres(folder, logs) : createOnCitus())
  const { databaseUrl, postgres } = database
  const bankFolder = path.join(folder, 'bank')
  const files = isFiles ? { folder: bankFolder, bank: startBank(bankFolder, randomOf(seed, 'bank')) } : undefined
  const settings: Record<string, string> = isFiles ? { MIDMONTH_RAILS: writeRails(folder, bankFolder) } : {}
  const processes = (['API', 'worker'] as const).flatMap(role =>
    [1, 2].map(number =>
      keepRunning(`${role}-${number}`, role, { databaseUrl, logs, settings, aheadMs: isFiles ? aheadMs : 0 }),
    ),
  )
  const receiver = await startReceiver(randomOf(seed, 'receiver'))
  let isSound = false
  try {
    isSound = await crash({
      ...{ databaseUrl, logs, settings, seed, postgres, processes, receiver, files, log: [] },
      currency: isFiles ? 'EUR' : 'GBP',
      kills: { ofProgram, ofPostgres, atFiles },
    })
  } finally {
    await Promise.all(processes.map(each => each.stop()))
    await files?.bank.stop()
    await receiver.stop()
    await database.end(!isSound || keeps)
    if (isSound && !keeps) rmSync(folder, { recursive: true })
    else console.log(`seed ${seed}: logs and data are in ${folder}`)
  }
  return isSound
}

/** A migrated database, and its server if it can be killed. */
type Database = { databaseUrl: string; postgres: Postgres | undefined; end(isKept: boolean): Promise<void> }

async function createOnPostgres(folder: string, logs: string): Promise<Database> {
  const postgres = await createPostgres({ folder, logs })
  await postgres.start()
  await runCommand(postgres.url, ['migrate'], { DATABASE_OWNER_URL: postgres.ownerUrl })
  return { databaseUrl: postgres.url, postgres, end: () => postgres.stop() }
}

async function createOnCitus(): Promise<Database> {
  const name = `crash_${randomBytes(6).toString('hex')}`
  await createOnNodes(name)
  const databaseUrl = addressAtCoordinator('app', name)
  const owner = { DATABASE_OWNER_URL: addressAtCoordinator('owner', name) }
  await runCommand(databaseUrl, ['migrate'], owner)
  await runCommand(databaseUrl, ['distribute', '--yes', '--shards', '4'], owner)
  const end = async (isKept: boolean) => {
    if (isKept) console.log(`the database is ${databaseUrl}`)
    else await dropDistributed(name)
  }
  return { databaseUrl, postgres: undefined, end }
}

// Batches of instant payments close at once.
function writeRails(folder: string, bankFolder: string): string {
  const file = path.join(folder, 'rails.json')
  const rail = {
    ...{ name: 'files', type: 'sepa-file', currency: 'EUR', instant: true, cutOff: '15:00', timeZone: 'Europe/Berlin' },
    debtors: { default: { name: 'Acme GmbH', iban: 'DE75512108001245126199' } },
    approval: { automatic: { paymentMax: 10_000_000, batchMax: 1_000_000_000, dayMax: 1_000_000_000 } },
    folder: bankFolder,
  }
  writeFileSync(file, JSON.stringify({ rails: [rail] }))
  return file
}

async function crash(stage: Stage): Promise<boolean> {
  const { logs, receiver, files, log } = stage
  const laps = [Date.now()]
  const kills = await runStorm(stage).finally(() => {
    writeFileSync(path.join(logs, 'clients.jsonl'), log.map(record => `${JSON.stringify(record)}\n`).join(''))
  })
  laps.push(Date.now())
  const findings = await settle(stage, files?.bank)
  laps.push(Date.now())
  const seconds = laps.slice(1).map((lap, index) => (lap - (laps[index] ?? 0)) / 1_000)
  print({ log, kills, findings, seconds, receiver, books: files?.bank.books })
  return Object.values(findings).every(found => found.length === 0)
}

/** Kills processes while the clients run, and waits for the last client. @returns the number of kills */
async function runStorm(stage: Stage): Promise<Record<string, number>> {
  const { databaseUrl, processes, postgres, files, kills } = stage
  const { partners, simulation, end } = await startClients(stage)
  // One partner's cycle ends early, another's midway, the third's late.
  const closings = partners.map(async (partner, index) => {
    await sleep(randomOf(seed, `cycle ${index}`).between(index, index + 1) * kills.ofProgram * 700)
    await retryUntil(
      () => endCycle(databaseUrl, partner),
      () => simulation.isOver(),
    )
  })
  const random = randomOf(seed, 'storm')
  const aimed =
    files && killAtFiles(files.folder, { processes, random: randomOf(seed, 'files'), killsMax: kills.atFiles })
  const poking = files && poke(databaseUrl, () => simulation.isOver())
  try {
    const atRandom = await killRepeatedly(kills, { processes, postgres, random })
    const deadline = Date.now() + aimedMsMax
    while (aimed !== undefined && !aimed.isDone() && Date.now() < deadline) await sleep(pokeMs)
    aimed?.stop()
    // Only now, because a targeted worker may be down at any moment before.
    await until(() => processes.every(each => each.isReady()), 'all processes are ready again')
    return { ...atRandom, ...aimed?.kills() }
  } finally {
    aimed?.stop()
    await Promise.all([end(), ...closings, poking])
  }
}

/** Queues the workers' tasks more often than every minute. The database may be down. */
async function poke(databaseUrl: string, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const client = new pg.Client({ connectionString: databaseUrl })
    client.on('error', () => undefined)
    try {
      await client.connect()
      while (!isOver()) {
        for (const task of tasks)
          await client.query(`select graphile_worker.add_job($1, job_key => $2, job_key_mode => 'preserve_run_at')`, [
            task,
            `poke: ${task}`,
          ])
        await sleep(pokeMs)
      }
    } catch {
      await sleep(pokeMs)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
}

type Report = {
  log: RequestRecord[]
  kills: Record<string, number>
  findings: AllFindings
  seconds: number[]
  receiver: Receiver
  books: BankBooks | undefined
}

function print({ log, kills, findings, seconds, receiver, books }: Report): void {
  const count = (holds: (record: RequestRecord) => boolean) => log.filter(holds).length
  const [storm, settled] = seconds.map(Math.round)
  const { counts, first } = findingsInWords(findings)
  const rows = {
    seconds: `${storm} killing, ${settled} draining and auditing`,
    kills: Object.entries(kills)
      .map(([victim, times]) => `${victim} ${times}`)
      .join(', '),
    requests: `${log.length}, of which ${count(({ attempts }) => attempts > 1)} were retried`,
    acknowledged: `${count(isA('acknowledged'))}, of which ${count(({ replayed }) => replayed)} by an attempt without a response`,
    refused: count(isA('refused')),
    unknown: count(isA('unknown')),
    webhooks: `${receiver.accepted.size} events accepted, in ${receiver.requests()} requests`,
    ...(books && {
      'bank files': `${books.files.length} collected, ${books.refused.length} of them rejected as a whole, with ${books.orders.length} payments; answered by ${books.answers.length} complete and ${books.halves.length} truncated files`,
      lies: books.lies.length,
    }),
    'server errors': log.reduce((sum, { serverErrors }) => sum + serverErrors, 0),
    ...Object.fromEntries(counts),
  }
  console.log(
    Object.entries(rows)
      .map(([name, value]) => `${name.padEnd(14)}${value}`)
      .join('\n'),
  )
  for (const each of first) console.log(each)
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

type Payer = 'simulated' | 'files'

function readOptions(): { seed: number; kills: number; keeps: boolean; banks: Payer[] } {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
      kills: { type: 'string', default: '25' },
      keep: { type: 'boolean', default: false },
      bank: { type: 'string' },
    },
  })
  const [seed, kills] = [values.seed, values.kills].map(Number)
  const banks = (['simulated', 'files'] as const).filter(each => values.bank === undefined || values.bank === each)
  if (!Number.isSafeInteger(seed) || seed === undefined || !kills || !Number.isSafeInteger(kills) || banks.length === 0)
    throw new Error('usage: node test/crash/crash.ts [--seed N] [--kills N] [--bank simulated|files] [--keep]')
  return { seed, kills, keeps: values.keep, banks }
}
