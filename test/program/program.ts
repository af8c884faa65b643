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

// Runs the CLI as an operator does: in real processes, configured only by environment variables.

const checkout = fileURLToPath(new URL('../..', import.meta.url))

export type Environment = Record<string, string>
type Addresses = { DATABASE_URL: string; DATABASE_OWNER_URL: string }
export type Outcome = { code: number | null; stdout: string; stderr: string }
export type Service = {
  child: ChildProcess
  pid: number
  address: string
  /** The sandbox key, if the start printed one. */
  key: string
  /** The printed example request. */
  curl: string
  stdout: string
  /** The log so far. */
  log(): string
  /** Resolves when the process exits. */
  ended: Promise<Outcome>
  stop(): Promise<Outcome>
}

/** Excludes the rest of our own environment, such as a DATABASE_URL set in the shell that runs the tests. */
export const baseEnvironment = {
  PATH: process.env.PATH,
  // The tests load the same modules dozens of times, which is most of the cost of a start.
  NODE_COMPILE_CACHE: path.join(checkout, 'node_modules/.cache/compiled'),
}

const services = new Set<Service>()
const dataDirs: string[] = []
const databases: string[] = []

/** The path of a folder that does not exist yet. */
export function newDataDir(): string {
  const dataDir = path.join(tmpdir(), `openwage-program-${randomBytes(6).toString('hex')}`)
  dataDirs.push(dataDir)
  return dataDir
}

/** Creates an empty or a migrated database on the suite's PostgreSQL. @returns its settings */
export async function newDatabase({ migrated = true } = {}): Promise<Addresses> {
  const { host, user, owner } = inject('postgres')
  const name = `program_${randomBytes(6).toString('hex')}`
  await query('postgres', async client => {
    // Only one session at a time can copy a template, and test files run concurrently.
    await client.query('select pg_advisory_lock(1)')
    await client.query(`create database ${name} owner ${owner} ${migrated ? 'template template_openwage' : ''}`)
  })
  databases.push(name)
  const addressOf = (role: string) => `postgres://${role}@/${name}?host=${encodeURIComponent(host)}`
  return { DATABASE_URL: addressOf(user), DATABASE_OWNER_URL: addressOf(owner) }
}

/** Runs SQL as a superuser, bypassing the service, on a database from `newDatabase` or on an embedded one. */
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

/** Runs a command and waits for it to exit. */
export async function openwage(args: string[], settings: Environment): Promise<Outcome> {
  return await outcomeOf(launch(args, settings))
}

/**
 * Starts the service and waits for its banner.
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
  const stdout = await bannerOf(child, ended)
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

/** Kills what the tests left running and deletes what they created. Not safe while a test is running. */
export async function tidyUp(): Promise<void> {
  for (const service of services) {
    service.child.kill('SIGKILL')
    await service.ended
  }
  services.clear()
  for (const dataDir of dataDirs.splice(0)) {
    // The embedded PostgreSQL stops once its last client process has exited.
    await vi.waitFor(() => assert.deepEqual(processesNaming(dataDir), []), { timeout: 10_000 })
    await rm(dataDir, { recursive: true, force: true })
  }
  await query('postgres', async client => {
    for (const name of databases.splice(0)) await client.query(`drop database ${name} with (force)`)
  })
}

/** The processes whose command line contains a text. For a data folder: PostgreSQL and its supervisor. */
export function processesNaming(text: string): { pid: number; args: string }[] {
  return execFileSync('ps', ['-eo', 'pid,args'], { encoding: 'utf8' })
    .split('\n')
    .filter(line => line.includes(text))
    .map(line => ({ pid: Number.parseInt(line, 10), args: line }))
}

/** Sends a GET request, by default for the list of tiers, which needs only a key. */
export async function get(service: Service, { key = service.key, path = '/v1/tiers' } = {}): Promise<Response> {
  return await fetch(`${service.address}${path}`, { headers: { 'x-api-key': key } })
}

/** Starts a command without waiting for it. */
export function launch(args: string[], settings: Environment, stderr: number | 'pipe' = 'pipe'): ChildProcess {
  return spawn(process.execPath, [path.join(checkout, 'cli/openwage.ts'), ...args], {
    env: { ...baseEnvironment, ...settings },
    stdio: ['ignore', 'pipe', stderr],
  })
}

async function bannerOf(child: ChildProcess, ended: Promise<Outcome>): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let stdout = ''
  child.stdout?.on('data', (text: string) => {
    stdout += text
    if (stdout.includes('Press Ctrl-C to stop.')) resolve(stdout)
  })
  ended.then(({ code, stderr }) => reject(new Error(`It exited with code ${code} before it was up: ${stderr}`)))
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
