import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { superuser } from '@openwage/embedded-postgres'
import pg from 'pg'
import { inject, vi } from 'vitest'

// The program as an operator has it: real processes, with settings from the environment and nothing else in common.

const checkout = fileURLToPath(new URL('../..', import.meta.url))

export type Environment = Record<string, string>
type Addresses = { DATABASE_URL: string; DATABASE_OWNER_URL: string }
export type Outcome = { code: number | null; stdout: string; stderr: string }
export type Service = {
  child: ChildProcess
  pid: number
  address: string
  /** The sandbox's key, where the start has printed one. */
  key: string
  /** The printed request, to be pasted into a shell. */
  curl: string
  stdout: string
  /** What it has logged so far. */
  log(): string
  /** How it ends, whenever it does. */
  ended: Promise<Outcome>
  stop(): Promise<Outcome>
}

/** Nothing else of ours: a DATABASE_URL of the person who runs the tests is not for them. */
export const baseEnvironment = {
  PATH: process.env.PATH,
  // The same modules are loaded dozens of times here, which is most of what a start costs.
  NODE_COMPILE_CACHE: path.join(checkout, 'node_modules/.cache/compiled'),
}

const services = new Set<Service>()
const dataDirs: string[] = []
const databases: string[] = []

/** A folder that nobody has made yet: the program does that itself. */
export function newDataDir(): string {
  const dataDir = path.join(tmpdir(), `openwage-program-${randomBytes(6).toString('hex')}`)
  dataDirs.push(dataDir)
  return dataDir
}

/** An empty or a migrated database on the suite's PostgreSQL, as settings for the program. */
export async function newDatabase({ migrated = true } = {}): Promise<Addresses> {
  const { host, user, owner } = inject('postgres')
  const name = `program_${randomBytes(6).toString('hex')}`
  await query('postgres', async client => {
    // Two test files that start at once take turns: a template can be copied by one session at a time.
    await client.query('select pg_advisory_lock(1)')
    await client.query(`create database ${name} owner ${owner} ${migrated ? 'template template_openwage' : ''}`)
  })
  databases.push(name)
  const addressOf = (role: string) => `postgres://${role}@/${name}?host=${encodeURIComponent(host)}`
  return { DATABASE_URL: addressOf(user), DATABASE_OWNER_URL: addressOf(owner) }
}

/** Runs SQL as a superuser on a database that `newDatabase` made, or on the one of a data folder, behind the program's back. */
export async function tamper(
  where: { DATABASE_URL: string } | { socketDir: string },
  text: string,
): Promise<Record<string, unknown>[]> {
  const connection =
    'DATABASE_URL' in where
      ? { connectionString: where.DATABASE_URL.replace(/(?<=:\/\/)\w+/, superuser) }
      : { host: where.socketDir, user: superuser, database: 'openwage' }
  const client = new pg.Client(connection)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** Runs a command to its end. */
export async function openwage(args: string[], settings: Environment): Promise<Outcome> {
  return await outcomeOf(launch(args, settings))
}

/**
 * Starts the service, and waits until it says that it runs.
 * @param options.stderr a file descriptor for its log, instead of a pipe to the test
 */
export async function start(
  settings: Environment,
  args: string[] = [],
  { stderr = 'pipe' }: { stderr?: number | 'pipe' } = {},
): Promise<Service> {
  const fixed = { PORT: '0', OPENWAGE_HEALTH_PORT: '0', OPENWAGE_DRAIN_SECONDS: '0' }
  const child = launch(['start', ...args], { ...fixed, ...settings }, stderr)
  const ended = outcomeOf(child)
  let logged = ''
  child.stderr?.on('data', (text: string) => {
    logged += text
  })
  const stdout = await greetingOf(child, ended)
  assert(child.pid !== undefined)
  const service: Service = {
    child,
    pid: child.pid,
    address: /API +(http\S+)/.exec(stdout)?.[1] ?? '',
    key: /Test key +(\S+)/.exec(stdout)?.[1] ?? '',
    curl: /curl[\s\S]*?(?=\n\n)/.exec(stdout)?.[0] ?? '',
    stdout,
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

/** Ends what the tests have left running, and removes what they have made. Call it when no test runs. */
export async function tidyUp(): Promise<void> {
  for (const service of services) {
    service.child.kill('SIGKILL')
    await service.ended
  }
  services.clear()
  for (const dataDir of dataDirs.splice(0)) {
    // PostgreSQL goes by itself when its last user has gone.
    await vi.waitFor(() => assert.deepEqual(processesNaming(dataDir), []), { timeout: 10_000 })
    await rm(dataDir, { recursive: true, force: true })
  }
  await query('postgres', async client => {
    for (const name of databases.splice(0)) await client.query(`drop database ${name} with (force)`)
  })
}

/** The processes whose command line holds a text: for a data folder, PostgreSQL and its keeper. */
export function processesNaming(text: string): { pid: number; args: string }[] {
  return execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' })
    .split('\n')
    .filter(line => line.includes(text))
    .map(line => ({ pid: Number.parseInt(line, 10), args: line }))
}

/** Asks for the list of tiers, which needs nothing but a key. */
export async function get(service: Service, { key = service.key, path = '/v1/tiers' } = {}): Promise<Response> {
  return await fetch(`${service.address}${path}`, { headers: { 'x-api-key': key } })
}

function launch(args: string[], settings: Environment, stderr: number | 'pipe' = 'pipe'): ChildProcess {
  return spawn(process.execPath, [path.join(checkout, 'cli/openwage.ts'), ...args], {
    env: { ...baseEnvironment, ...settings },
    stdio: ['ignore', 'pipe', stderr],
  })
}

async function greetingOf(child: ChildProcess, ended: Promise<Outcome>): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let stdout = ''
  child.stdout?.on('data', (text: string) => {
    stdout += text
    if (stdout.includes('Ctrl-C stops it.')) resolve(stdout)
  })
  ended.then(({ code, stderr }) => reject(new Error(`It ended with exit code ${code} before it ran: ${stderr}`)))
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
