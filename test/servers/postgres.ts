import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, closeSync, mkdirSync, openSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import {
  asUser,
  findPackage,
  firstCommands,
  isRoot,
  prepareBinaries,
  run,
  serverUser,
  superuser,
} from '@midmonth/embedded-postgres'
import pg from 'pg'
import { names } from '../../src/database/embedded.ts'

// Crash recovery takes a second; on a loaded machine, ten.
const startMsMax = 60_000

/** A PostgreSQL server that can be killed and restarted on the same data. */
export type Postgres = {
  /** The folder of its socket. */
  host: string
  /** The address for the app role, which owns nothing. */
  url: string
  /** The address for migrations. */
  ownerUrl: string
  isUp(): boolean
  start(): Promise<void>
  /** Kills the postmaster with SIGKILL and waits for its last backend to exit. It cannot be restarted earlier. */
  kill(): Promise<void>
  stop(): Promise<void>
}

/**
 * @param options.folder accessible to every user, because PostgreSQL refuses to run as root
 * @param options.binaries the folder of another PostgreSQL's `bin`; by default ours
 */
export async function createPostgres({
  folder,
  logs,
  settings = {},
  ...options
}: {
  folder: string
  logs: string
  settings?: Record<string, string>
  binaries?: string
}): Promise<Postgres> {
  const pgdata = path.join(folder, 'postgres')
  const sockets = path.join(folder, 'sockets')
  // Shown in the command line of every PostgreSQL process, even after its parent has exited.
  const clusterName = path.basename(folder)
  const urlOf = (role: keyof typeof names.roles) => `postgres://${names.roles[role]}@localhost/midmonth?host=${sockets}`
  const [url, ownerUrl] = [urlOf('app'), urlOf('owner')]
  const user = serverUser(pgdata)
  const binaries = options.binaries ?? (await prepareBinaries(findPackage(), { dataDir: folder, user }))
  for (const made of [pgdata, sockets]) {
    mkdirSync(made, { mode: 0o700 })
    if (isRoot) chownSync(made, user.uid, user.gid)
  }
  const initdb = [
    '-D',
    pgdata,
    '-U',
    superuser,
    '--no-instructions',
    '--data-checksums',
    '--encoding=UTF8',
    '--locale=C',
  ]
  await check('initdb', await run(path.join(binaries, 'bin/initdb'), initdb, user))
  const single = ['--single', '-D', pgdata, '-c', 'exit_on_error=on', 'template1']
  const input = firstCommands(names)
  await check('create database', await run(path.join(binaries, 'bin/postgres'), single, user, { input }))

  let server: ChildProcess | undefined
  let isUp = false

  async function start(): Promise<void> {
    const log = openSync(path.join(logs, 'postgresql.log'), 'a')
    const effective = {
      listen_addresses: '',
      unix_socket_directories: sockets,
      cluster_name: clusterName,
      log_line_prefix: '%m [%p] ',
      max_connections: '200',
      ...settings,
    }
    const args = Object.entries(effective).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = spawn(path.join(binaries, 'bin/postgres'), ['-D', pgdata, ...args], {
      ...asUser(user),
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    server = child
    const deadline = Date.now() + startMsMax
    while (!(await answers(url))) {
      if (child.exitCode !== null || Date.now() > deadline) throw new Error(`PostgreSQL did not start; see ${logs}`)
      // Killed while it was starting.
      if (child.signalCode !== null) return
      await sleep(20)
    }
    isUp = true
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    isUp = false
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return
    const exited = once(server, 'exit')
    server.kill(signal)
    await exited
    while ((await processes()).includes(clusterName)) await sleep(20)
  }

  return {
    host: sockets,
    url,
    ownerUrl,
    isUp: () => isUp,
    start,
    kill: () => end('SIGKILL'),
    stop: () => end('SIGINT'),
  }
}

const answerMsMax = 2_000

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  try {
    // The client's own limit does not end an attempt whose socket the server has closed.
    return await Promise.race([client.connect().then(() => true), sleep(answerMsMax, false, { ref: false })])
  } catch {
    return false
  } finally {
    client.end().catch(() => undefined)
  }
}

async function processes(): Promise<string> {
  const { stdout } = await promisify(execFile)('ps', ['-axo', 'args='], { maxBuffer: 64 * 1024 * 1024 })
  return stdout
}

async function check(what: string, { ok, said }: { ok: boolean; said: string }): Promise<void> {
  if (!ok) throw new Error(`${what} failed: ${said}`)
}
