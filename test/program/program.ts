import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { superuser } from '@midmonth/embedded-postgres'
import { identityToRecipient } from 'age-encryption'
import pg from 'pg'
import pino from 'pino'
import { inject, vi } from 'vitest'
import { banner } from '../../cli/banner.ts'
import { run } from '../../cli/run.ts'
import { systemClock } from '../../src/clock.ts'
import { readSettings } from '../../src/config.ts'
import { connect } from '../../src/database/connect.ts'
import * as main from '../../src/main.ts'
import { openDatabase, prepare } from '../../src/open-database.ts'
import { claimMode, listPartners } from '../../src/partners/partners.ts'
import { exampleRequest, seedDemo } from '../../src/sandbox/demo.ts'
import { openSealer } from '../../src/sealing/installation-keys.ts'
import { describeKey } from '../../src/sealing/key-providers.ts'
import { keySettings, keySource } from '../harness/installation-key.ts'
import { lanesOfTests } from '../harness/lanes.ts'
import { freePort } from '../servers/free-port.ts'

// Runs the CLI like an operator, configured only by environment variables. Tests of a command's effects run it in the test
// process, which takes milliseconds; tests of process behaviour (signals, exit, output pipes) start a process, which
// takes a second.

const checkout = fileURLToPath(new URL('../..', import.meta.url))

export type Environment = Record<string, string>
type Addresses = { DATABASE_URL: string; DATABASE_OWNER_URL: string }
export type Outcome = { code: number | null; stdout: string; stderr: string }
/**
 * The settings of an installation with everything in one folder, which backs itself up.
 * @param identity a key of age, which opens the backups
 */
export async function installationIn(folder: string, identity: string) {
  return {
    // The tests’ own environment has a key; an installation has its own file.
    MIDMONTH_INSTALLATION_KEY: '',
    MIDMONTH_STATE_DIR: path.join(folder, 'state'),
    MIDMONTH_DATA_DIR: path.join(folder, 'data'),
    MIDMONTH_BACKUP_DIR: path.join(folder, 'archive'),
    MIDMONTH_BACKUP_RECIPIENTS: await identityToRecipient(identity),
  }
}

/** A running API, in any process. */
export type Served = {
  address: string
  /** The sandbox key, if the start printed one or the demo was copied. */
  key: string
  /** The printed example request. */
  curl: string
  stdout: string
}
export type Service = Served & {
  child: ChildProcess
  pid: number
  /** The log so far, which can lag behind the banner and the responses. */
  log(): string
  /** Resolves when the process exits. */
  ended: Promise<Outcome>
  stop(): Promise<Outcome>
}

/** Excludes the rest of the environment, such as a DATABASE_URL in the shell that runs the tests. */
export const baseEnvironment = {
  PATH: process.env.PATH,
  // Loading the same modules dozens of times is most of the cost of a start.
  NODE_COMPILE_CACHE: path.join(checkout, 'node_modules/.cache/compiled'),
  // Rendering the documentation slows the start, and these tests do not read it.
  MIDMONTH_DOCS: 'off',
  // The tests must not use the developer's own logins.
  XDG_CONFIG_HOME: '/nonexistent',
  MIDMONTH_LANES: lanesOfTests,
  ...keySettings,
}

const fixed = {
  MIDMONTH_LANES: lanesOfTests,
  PORT: '0',
  MIDMONTH_HEALTH_PORT: '0',
  MIDMONTH_DRAIN_SECONDS: '0',
  MIDMONTH_DOCS: 'off',
  ...keySettings,
}

/** Settings of a live service, for `start`. */
export async function liveSettings(): Promise<{ MIDMONTH_MODE: 'live'; MIDMONTH_PUBLIC_URL: string; PORT: string }> {
  const PORT = `${await freePort()}`
  return { MIDMONTH_MODE: 'live', MIDMONTH_PUBLIC_URL: `http://127.0.0.1:${PORT}`, PORT }
}

const services = new Set<Service>()
const servers = new Set<() => Promise<void>>()
const dataDirs: string[] = []
/** The API key of the demo, by the address of its database. */
const demoKeys = new Map<string, string>()

/** The path of a folder that does not exist yet. */
export function newDataDir(): string {
  const dataDir = path.join(tmpdir(), `midmonth-program-${randomBytes(6).toString('hex')}`)
  dataDirs.push(dataDir)
  return dataDir
}

/**
 * Creates a database on the suite's PostgreSQL: empty, migrated, or with the demo, whose seeding would take most of the time
 * of a start. A start does not print the key of a seeded demo; `start` and `serve` return it.
 * @returns its settings
 */
export async function newDatabase({ migrated = true, hasDemo = false } = {}): Promise<Addresses> {
  const { host, user, owner } = inject('postgres')
  const name = `program_${randomBytes(6).toString('hex')}`
  const addressOf = (role: string, database: string) =>
    `postgres://${role}@/${database}?host=${encodeURIComponent(host)}`
  const settings = { DATABASE_URL: addressOf(user, name), DATABASE_OWNER_URL: addressOf(owner, name) }
  await query('postgres', async client => {
    // Only one session at a time can copy a template, and test files run concurrently.
    await client.query('select pg_advisory_lock(1)')
    if (hasDemo) demoKeys.set(settings.DATABASE_URL, await demoTemplate(client, addressOf(user, templates.demo)))
    const template = hasDemo ? templates.demo : templates.migrated
    await client.query(`create database ${name} owner ${owner} ${migrated ? `template ${template}` : ''}`)
  })
  return settings
}

/** The demo leaves no work for the worker, but the queue starts with a job per task. */
export const dueJobs = 'select id from graphile_worker.jobs where run_at <= now()'

const templates = { migrated: 'template_midmonth', demo: 'template_demo' }

/** Seeds the demo into its template, unless an earlier test has. @returns the API key of the demo */
async function demoTemplate(client: pg.Client, address: string): Promise<string> {
  const { rows } = await client.query<{ secret: string }>(
    `select shobj_description(oid, 'pg_database') as secret from pg_database where datname = '${templates.demo}'`,
  )
  if (rows[0] !== undefined) return rows[0].secret
  await client.query(
    `create database ${templates.demo} owner ${inject('postgres').owner} template ${templates.migrated}`,
  )
  const { db, close } = connect(address, { log: pino({ level: 'silent' }), connectionsMax: 1, lanes: lanesOfTests })
  await openSealer(db, keySource)
  const now = new Date()
  await db.transaction().execute(tx => claimMode(tx, { mode: 'sandbox', now }))
  const { secret } = (await seedDemo(db, now)) ?? assert.fail('The template has partners')
  await close()
  await client.query(`comment on database ${templates.demo} is '${secret}'`)
  return secret
}

/** Runs SQL as a superuser, bypassing the service, on a database from `newDatabase` or on an embedded one. */
export async function tamper(
  where: { DATABASE_URL: string } | { socketDir: string },
  text: string,
): Promise<Record<string, unknown>[]> {
  const connection =
    'DATABASE_URL' in where
      ? { connectionString: where.DATABASE_URL.replace(/(?<=:\/\/)\w+/, superuser) }
      : { host: where.socketDir, user: superuser, database: 'midmonth' }
  const client = new pg.Client(connection)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/**
 * Runs a command and waits for it to end: in this process, except for `start` and commands that start an embedded PostgreSQL,
 * which need a separate process.
 */
export async function midmonth(args: string[], settings: Environment): Promise<Outcome> {
  if (args[0] === 'start' || settings.MIDMONTH_DATA_DIR !== undefined) return await midmonthProcess(args, settings)
  return await midmonthHere(args, settings)
}

/** Runs a command in this process. */
export async function midmonthHere(
  args: string[],
  settings: Environment,
  stdin: Readable = Readable.from([]),
): Promise<Outcome> {
  const [stdout, stderr] = [new Output(), new Output()]
  const env = { ...baseEnvironment, ...settings }
  const code = await run(args, { env, stdin, stdout, stderr })
  return { code, stdout: stdout.text, stderr: stderr.text }
}

/**
 * Runs the commands of a shell script in this process, which takes milliseconds instead of a second per command.
 * @returns the shell function `midmonth`, which passes a command and the exported variables to this process
 */
export async function runCommandsHere(): Promise<{ midmonth: string; stop(): void }> {
  const server = createServer(async (request, response) => {
    const [input = '', count, ...parts] = (await text(request)).split('\0')
    const args = parts.slice(0, Number(count))
    const variables = parts.slice(Number(count)).filter(line => line.includes('='))
    const env = Object.fromEntries(variables.map(line => [line.split('=', 1)[0], line.slice(line.indexOf('=') + 1)]))
    const { code, stdout, stderr } = await midmonthHere(args, env, Readable.from([Buffer.from(input, 'base64')]))
    response.end(`printf %s ${quoted(stdout)}; printf %s ${quoted(stderr)} >&2; return ${code}`)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  // A shell variable cannot hold the NUL separators, but a pipe can carry them.
  const handOver = `{ base64 -w0; printf '\\0%s' "$#" "$@"; printf '\\0'; env -0; } | curl -sS --data-binary @- http://127.0.0.1:${port}`
  return { midmonth: `midmonth() { eval "$(${handOver})"; }`, stop: () => server.close() }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

class Output extends Writable {
  text = ''

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString('utf8')
    done()
  }
}

/** Runs a command in a process and waits for it to exit. */
export async function midmonthProcess(args: string[], settings: Environment): Promise<Outcome> {
  return await outcomeOf(launch(args, settings))
}

/**
 * Serves the API and the worker from this process, on a migrated database, for tests of the service's behaviour. Tests of
 * startup, logging and shutdown need `start`. Rejects if a start would be refused.
 * @param options.roles by default both
 */
export async function serve(
  settings: Environment,
  { roles = { api: true, worker: true } }: { roles?: main.Roles } = {},
): Promise<Served & { log(): string; stop(): Promise<void> }> {
  const all = readSettings({ ...fixed, ...settings })
  const now = systemClock
  const lines: string[] = []
  const log = pino({}, { write: line => lines.push(line) })
  const database = await openDatabase(all, log)
  const { db } = database
  const mode = all.MIDMONTH_MODE
  const open = async () => {
    const sealer = await prepare(database, { mayMigrate: false, log })
    await db.transaction().execute(tx => claimMode(tx, { mode, now: now() }))
    return await main.run(database, { settings: all, roles, sealer, log, now })
  }
  const running = await open().catch(async error => {
    await database.close()
    throw error
  })
  const key = demoKeys.get(settings.DATABASE_URL ?? '')
  const partnerId = (await listPartners(db)).at(-1)?.id
  const example = key === undefined ? undefined : await exampleRequest(db)
  const printed = banner({
    mode,
    roles,
    address: running.address,
    database,
    installationKey: await describeKey(database.keySource),
    key,
    consoleToken: undefined,
    example,
    partnerId,
  })
  let stopping: Promise<void> | undefined
  const stop = () => (stopping ??= running.stop())
  servers.add(stop)
  return { ...servedAs(printed), log: () => lines.join(''), stop }
}

/**
 * Starts the service and waits for its banner.
 * @param options.stderr a file descriptor for its log, instead of a pipe to the test
 * @param options.limits the command of a shell that limits the process, such as `ulimit -f 100`
 */
export async function start(
  settings: Environment,
  args: string[] = [],
  { stderr = 'pipe', limits }: { stderr?: number | 'pipe'; limits?: string } = {},
): Promise<Service> {
  const child = launch(['start', ...args], { ...fixed, ...settings }, { stderr, limits })
  const ended = outcomeOf(child)
  let logged = ''
  child.stderr?.on('data', (text: string) => {
    logged += text
  })
  const stdout = await bannerOf(child, ended)
  assert(child.pid !== undefined)
  const service: Service = {
    ...servedAs(stdout, demoKeys.get(settings.DATABASE_URL ?? '')),
    child,
    pid: child.pid,
    log: () => logged,
    ended,
    async stop() {
      child.kill('SIGTERM')
      return await ended
    },
  }
  services.add(service)
  return service
}

/**
 * Kills processes and deletes files that the tests left behind. Leaves the databases: dropping one takes a checkpoint, and
 * they are removed with the suite's PostgreSQL. Not safe while a test is running.
 */
export async function tidyUp(): Promise<void> {
  for (const service of services) {
    service.child.kill('SIGKILL')
    await service.ended
  }
  services.clear()
  for (const stop of servers) await stop()
  servers.clear()
  for (const dataDir of dataDirs.splice(0)) {
    // The embedded PostgreSQL stops once its last client process has exited.
    await vi.waitFor(() => assert.deepEqual(processesNaming(dataDir), []), { timeout: 45_000 })
    for (const folder of [dataDir, `${dataDir}-key`]) await rm(folder, { recursive: true, force: true })
  }
}

/** The processes whose command line contains a text; for a data folder, these are PostgreSQL and its supervisor. */
export function processesNaming(text: string): { pid: number; args: string }[] {
  return execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' })
    .split('\n')
    .filter(line => line.includes(text))
    .map(line => ({ pid: Number.parseInt(line, 10), args: line }))
}

/** Sends a GET request; by default for the list of tiers, which needs only a key. */
export async function get(service: Served, { key = service.key, path = '/v1/tiers' } = {}): Promise<Response> {
  return await fetch(`${service.address}${path}`, { headers: { 'x-api-key': key } })
}

/** Starts a command without waiting for it. */
export function launch(
  args: string[],
  settings: Environment,
  { stderr = 'pipe', limits = ':' }: { stderr?: number | 'pipe'; limits?: string | undefined } = {},
): ChildProcess {
  const command = [process.execPath, path.join(checkout, 'cli/midmonth.ts'), ...args]
  return spawn('sh', ['-c', `${limits} && exec "$@"`, 'sh', ...command], {
    env: { ...baseEnvironment, ...settings },
    stdio: ['ignore', 'pipe', stderr],
  })
}

function servedAs(stdout: string, demoKey = ''): Served {
  return {
    address: /API +(http\S+)/.exec(stdout)?.[1] ?? '',
    key: /Test key +(\S+)/.exec(stdout)?.[1] ?? demoKey,
    curl: /curl[\s\S]*?(?=\n\n)/.exec(stdout)?.[0] ?? '',
    stdout,
  }
}

async function bannerOf(child: ChildProcess, ended: Promise<Outcome>): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let stdout = ''
  child.stdout?.on('data', (text: string) => {
    stdout += text
    if (stdout.includes('Press Ctrl-C to stop.')) resolve(stdout)
  })
  ended.then(({ code, stderr }) =>
    reject(new Error(`The service exited with code ${code} before it was up: ${stderr}`)),
  )
  return await promise
}

async function outcomeOf(child: ChildProcess): Promise<Outcome> {
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', text => {
    stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', text => {
    stderr += text
  })
  await once(child, 'close')
  return { code: child.exitCode, stdout, stderr }
}

async function query(database: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const { host } = inject('postgres')
  const client = new pg.Client({ host, user: superuser, database })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}
