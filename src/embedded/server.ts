import { type ChildProcess, spawn } from 'node:child_process'
import {
  closeSync,
  constants,
  fchownSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { type Cluster, ensureSocketDir } from './cluster.ts'
import { EmbeddedPostgresProblem } from './problem.ts'
import { introduceRoles, lacksRoles, roles } from './roles.ts'
import { asUser, isRoot } from './server-user.ts'

// The server lives exactly as long as somebody uses it. Who uses it holds the users' FIFO open for writing: the kernel
// closes that for whoever goes, kill -9 included. A keeper, a small shell, reads the FIFO; its end means that the last
// user has gone. Whoever finds the server without a keeper gives it a new one, and whoever leaves as the last one stops
// the server in any case, so that a killed keeper leaves nothing running either. And nobody starts a server while the
// FIFO has a reader: PostgreSQL's own lock, a process number, says nothing across containers that share a folder.

/** A server that is busy (recovering after a crash, shutting down) says so; it gets longer than one that says nothing. */
const limits = { silentMsMax: 15_000, busyMsMax: 120_000, shutdownMsMax: 60_000, connectMsMax: 5_000 }

/** One place among the users of the server: the descriptor that says so. */
export type Lease = number

/** Takes a place, whether a server runs or not. Node opens with close-on-exec, so no child keeps it by mistake. */
export function acquireLease({ usersFifo }: Cluster): Lease {
  // Opening for writing fails without a reader, so for a moment we are that reader ourselves.
  const reading = openForReading(usersFifo)
  try {
    return openSync(usersFifo, constants.O_WRONLY | constants.O_NONBLOCK)
  } finally {
    closeSync(reading)
  }
}

/**
 * Leaves; the last one out turns off the light, and waits until it is dark.
 * @throws EmbeddedPostgresProblem when the server has not gone within a minute
 */
export async function releaseLease(cluster: Cluster, seat: Lease): Promise<void> {
  closeSync(seat)
  if (isUsed(cluster)) return
  await shutDown(cluster)
  try {
    rmdirSync(cluster.socketDir)
  } catch {
    // Somebody has started another server there already, or removed the folder.
  }
}

async function shutDown(cluster: Cluster): Promise<void> {
  const pid = postmasterPid(cluster)
  if (pid === undefined) return
  // Fast shutdown. The keeper sends the same; twice is once, and perhaps there is no keeper.
  signal(pid, 'SIGINT')
  const deadline = performance.now() + limits.shutdownMsMax
  while (postmasterPid(cluster) === pid) {
    if (performance.now() > deadline) {
      throw new EmbeddedPostgresProblem(
        `PostgreSQL (process ${pid}) is still shutting down after ${limits.shutdownMsMax / 1000} s; see ${cluster.logFile}`,
      )
    }
    await pause(5)
  }
  // Removing postmaster.pid is its last act but one. Bounded: an orphan whose new parent does not reap it stays a zombie.
  for (let tries = 0; signal(pid, 0) && tries < 100; tries++) await pause(2)
}

/**
 * Joins the running server, or starts it.
 * @param leaving gives up a long wait
 * @returns a connection that ends when the server does; it does not keep Node alive
 * @throws EmbeddedPostgresProblem when that cannot be done, with what the server's log says
 */
export async function joinOrStart(
  cluster: Cluster,
  { lease, settings, leaving }: { lease: Lease; settings: Record<string, string>; leaving: AbortSignal },
): Promise<pg.Client> {
  const began = performance.now()
  let lastBusyAt = began
  let starting: Start | undefined
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 1.5, 250)) {
    await ensureSocketDir(cluster)
    const answer = await connect(cluster)
    if (answer instanceof pg.Client) {
      if (!isWatched(lease)) keep(cluster)
      return answer
    }
    const pid = postmasterPid(cluster)
    if (starting?.hasEnded) starting = starting.outcome()
    if (starting === undefined && pid === undefined && !isWatched(lease)) starting = start(cluster, settings)
    const now = performance.now()
    if (answer.isBusy) lastBusyAt = now
    if (now - lastBusyAt > limits.silentMsMax || now - began > limits.busyMsMax) {
      throw silence(cluster, { pid, waitedMs: now - began, answer: answer.message })
    }
    await pause(pauseMs, undefined, { signal: leaving })
  }
}

function silence(
  { dataDir, logFile }: Cluster,
  { pid, waitedMs, answer }: { pid: number | undefined; waitedMs: number; answer: string },
): EmbeddedPostgresProblem {
  const seen = `PostgreSQL in ${dataDir} cannot be reached after ${Math.round(waitedMs / 1000)} s (${answer})`
  const advice =
    pid === undefined
      ? 'if a process in another container uses this folder, give each its own folder or one DATABASE_URL; ' +
        'otherwise stop every Openwage that uses it, and start again'
      : `process ${pid} runs it: end that with "kill -INT ${pid}", and start again`
  return new EmbeddedPostgresProblem(`${seen}; ${advice}. The end of ${logFile}: ${endOf(readFrom(logFile, 0))}`)
}

/** Ends the connection that joinOrStart returned. */
export async function endConnection(client: pg.Client): Promise<void> {
  // Otherwise Node could end in the middle of this.
  refcounted(client).ref()
  await client.end()
}

/** The methods that pg documents and its types leave out. */
function refcounted(client: pg.Client) {
  return client as pg.Client & { ref(): void; unref(): void }
}

/** How a role connects. Every field is set, because pg would fill the gaps from PG* variables of the environment. */
export function connectionTo({ socketDir }: Cluster, role: keyof typeof roles) {
  return { host: socketDir, port: 5432, user: roles[role], database: 'openwage', ssl: false } as const
}

type Refusal = { isBusy: boolean; message: string }

async function connect(cluster: Cluster): Promise<pg.Client | Refusal> {
  const client = new pg.Client({
    ...connectionTo(cluster, 'app'),
    application_name: 'openwage embedded',
    connectionTimeoutMillis: limits.connectMsMax,
    // It idles for as long as the process lives, whatever the operator sets for others.
    options: '-c idle_session_timeout=0',
  })
  // Without a listener a lost connection would end the process; the caller adds one that acts.
  client.on('error', () => undefined)
  try {
    await client.connect()
    // A process that has nothing else to do may end.
    refcounted(client).unref()
    return client
  } catch (error) {
    client.end().catch(() => undefined)
    const { code = '', message } = error as pg.DatabaseError
    if (lacksRoles(error)) return await bringRoles(cluster)
    // 57P03: starting, recovering or shutting down; 53300: every connection is taken; 57P01: told to go just now.
    if (/^(57P03|53300|57P01)$/.test(code)) return { isBusy: true, message }
    // Another SQLSTATE is an answer that waiting does not change, such as a database that somebody has dropped.
    if (/^[0-9A-Z]{5}$/.test(code) && error instanceof pg.DatabaseError) {
      throw new EmbeddedPostgresProblem(`PostgreSQL in ${cluster.dataDir} does not let us in: ${message}`)
    }
    return { isBusy: false, message }
  }
}

async function bringRoles(cluster: Cluster): Promise<Refusal> {
  try {
    await introduceRoles(connectionTo(cluster, 'owner'))
    return { isBusy: true, message: 'its roles were just made' }
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) return { isBusy: false, message: String(error) }
    throw new EmbeddedPostgresProblem(
      `PostgreSQL in ${cluster.dataDir} has no role ${roles.app}, and it cannot be made: ${error.message}`,
    )
  }
}

type Start = {
  hasEnded: boolean
  /** Returns when another attempt makes sense. @throws EmbeddedPostgresProblem when it does not */
  outcome(): undefined
}

/**
 * Starts the server, or takes over one that has lost its keeper ($1 is its process), and keeps it.
 * - Standard input is the reading end of the users' FIFO, so the keeper has it from its first moment on.
 * - A second shell watches the FIFO while the first one waits for the server: when either has ended, the other follows.
 * - INT is repeated, because a server that has only just been forked still ignores it.
 * - Signals of a terminal or a service manager are for us to act on, not for the keeper.
 */
const keeper = `
  trap '' HUP INT TERM
  exec 3<&0 </dev/null
  server=$1
  shift
  if [ -z "$server" ]; then
    "$@" 3<&- &
    server=$!
  fi
  exec >/dev/null 2>&1
  (
    while read -r line; do :; done <&3
    exec 3<&-
    while kill -INT "$server"; do sleep 1; done
  ) &
  watch=$!
  exec 3<&-
  wait "$server"
  while kill -0 "$server"; do sleep 1; done
  kill -KILL "$watch"
`

function start(cluster: Cluster, settings: Record<string, string>): Start {
  const { logFile, pgdata, socketDir, binaries } = cluster
  removeStaleLock(join(pgdata, 'postmaster.pid'), pgdata)
  removeStaleLock(join(socketDir, '.s.PGSQL.5432.lock'), pgdata)
  rotateLog(cluster)
  const logStart = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
  const options = Object.entries({ ...serverSettings, unix_socket_directories: socketDir, ...settings })
  const child = spawnKeeper(cluster, [
    '',
    ...[join(binaries, 'bin/postgres'), '-D', pgdata],
    ...options.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ])
  const starting: Start = {
    hasEnded: false,
    outcome() {
      const said = readFrom(logFile, logStart)
      // Lost against another start; too soon after a crash whose last processes are still going; it ran and ended; the
      // last user of the one before has just removed the socket's folder.
      const passing =
        /lock file .* (already exists|is empty)|is still in use|database system is (ready|shut down)|\.lock": No such file/
      if (passing.test(said)) return
      throw new EmbeddedPostgresProblem(`PostgreSQL in ${cluster.dataDir} does not start: ${endOf(said)}`)
    },
  }
  const end = () => {
    starting.hasEnded = true
  }
  child.once('exit', end).once('error', end)
  return starting
}

/** A server whose keeper was killed gets another one. */
function keep(cluster: Cluster): void {
  const pid = postmasterPid(cluster)
  // The folder is only for whoever reads the list of processes.
  if (pid !== undefined) spawnKeeper(cluster, [String(pid), cluster.pgdata])
}

function spawnKeeper(cluster: Cluster, args: string[]): ChildProcess {
  const reading = openForReading(cluster.usersFifo)
  const log = openLog(cluster)
  try {
    const child = spawn('/bin/sh', ['-c', keeper, 'openwage-keeper', ...args], {
      ...asUser(cluster.user),
      // Nothing of ours but these: a pipe that we write to must be able to end while the server lives on.
      stdio: [reading, log, log],
      // A session of its own: what is sent to our terminal or process group does not reach it.
      detached: true,
    })
    child.unref()
    return child
  } finally {
    closeSync(log)
    closeSync(reading)
  }
}

const serverSettings = {
  // No network at all: the socket's folder is the lock on the door.
  listen_addresses: '',
  port: '5432',
  unix_socket_permissions: '0700',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  // A quarter of a small machine's 1 GB; the operating system's cache does the rest.
  shared_buffers: '256MB',
  // Several processes, each with a pool of tens, and an operator who looks inside.
  max_connections: '200',
  // Details and statements in a log could hold names and bank details.
  log_error_verbosity: 'terse',
  log_min_error_statement: 'panic',
} as const

function openLog({ logFile, user }: Cluster): number {
  const log = openSync(logFile, 'a', 0o600)
  if (isRoot) fchownSync(log, user.uid, user.gid)
  return log
}

/** Keeps one older log. */
function rotateLog({ logFile }: Cluster): void {
  // 64 MiB: years of an ordinary life, minutes of something that fails in a loop.
  if ((statSync(logFile, { throwIfNoEntry: false })?.size ?? 0) <= 64 * 1024 * 1024) return
  try {
    renameSync(logFile, `${logFile}.old`)
  } catch (error) {
    // Another start has done it.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Whether anybody holds the FIFO open for writing. */
function isUsed({ usersFifo }: Cluster): boolean {
  const reading = openForReading(usersFifo)
  try {
    // End of file means that there is no writer; nothing to read yet (EAGAIN) means that there is one.
    while (readSync(reading, Buffer.alloc(512)) > 0);
    return false
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return true
    throw error
  } finally {
    closeSync(reading)
  }
}

/** Whether anybody reads the FIFO. Keepers take no notice of what is written there. */
function isWatched(seat: Lease): boolean {
  try {
    writeSync(seat, '\n')
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EPIPE') return false
    if (code === 'EAGAIN') return true
    throw error
  }
}

function openForReading(fifo: string): number {
  return openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK)
}

/** The process that runs this cluster now; nothing when a crash has left its file behind. */
function postmasterPid({ pgdata }: Cluster): number | undefined {
  const pid = pidIn(join(pgdata, 'postmaster.pid'))
  return pid !== undefined && isPostmasterOf(pgdata, pid) ? pid : undefined
}

/**
 * PostgreSQL ignores a lock file whose process is dead. But it would refuse to start for ever when, after a restart of
 * the machine or the container, the number belongs to another process of the same user, or when the file is empty.
 */
function removeStaleLock(lockFile: string, pgdata: string): void {
  const found = statSync(lockFile, { throwIfNoEntry: false })
  if (found === undefined) return
  const pid = pidIn(lockFile)
  // 10 s: a server that starts fills its file at once.
  const isStale =
    pid === undefined ? found.mtimeMs < Date.now() - 10_000 : signal(pid, 0) && !isPostmasterOf(pgdata, pid)
  if (!isStale) return
  const aside = `${lockFile}.stale`
  try {
    renameSync(lockFile, aside)
    // Had another start written a new one just then, it goes back; PostgreSQL looks for it once a minute.
    if (pidIn(aside) === pid) rmSync(aside)
    else renameSync(aside, lockFile)
  } catch (error) {
    // Another start has removed it.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function pidIn(lockFile: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(lockFile, 'utf8'), 10)
    return pid > 0 ? pid : undefined
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** In doubt yes: a server that is taken for dead would have its lock removed. */
function isPostmasterOf(pgdata: string, pid: number): boolean {
  if (!signal(pid, 0)) return false
  // Without /proc, on macOS, the number has to do.
  if (process.platform !== 'linux') return true
  try {
    if (readFileSync(`/proc/${pid}/comm`, 'utf8').trim() !== 'postgres') return false
  } catch {
    return false
  }
  try {
    // PostgreSQL works in its data folder.
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(pgdata)
  } catch (error) {
    // A container's root may not look there. Any other error: it has gone, or is a zombie that nobody reaps.
    return (error as NodeJS.ErrnoException).code === 'EACCES'
  }
}

/** @returns whether the process exists and is one that we may signal */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

function readFrom(logFile: string, start: number): string {
  try {
    return readFileSync(logFile).subarray(start).toString()
  } catch {
    return ''
  }
}

function endOf(log: string): string {
  return log.trim().split('\n').slice(-5).join(' | ') || '(nothing)'
}
