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
import type { Names } from './roles.ts'
import { asUser, isRoot } from './server-user.ts'

// The server runs exactly as long as a process uses it. Each process that uses it holds a lease: it keeps a FIFO open for
// writing, which the kernel closes when the process ends, kill -9 included. A keeper, a small shell, reads the FIFO; end of
// file means that the last lease has gone, and it stops the server. A process that finds the server without a keeper starts a
// new one, and the last lease holder stops the server in any case, so that a killed keeper leaves nothing running either. No
// server is started while the FIFO has a reader: PostgreSQL's own lock, a process id, means nothing to another container that
// shares the folder.

const limits = {
  // If no process runs the server: the folder is used by another container.
  absentMsMax: 15_000,
  // If a process runs it and does not answer: a machine that starts many things at once takes its time.
  silentMsMax: 60_000,
  // If it says that it is recovering after a crash, or shutting down.
  busyMsMax: 120_000,
  noticeMs: 5_000,
  shutdownMsMax: 60_000,
  connectMsMax: 5_000,
  // A keeper repeats its signal to stop every second.
  stoppingMsMax: 2_000,
}

/** The right to use the server: a descriptor of the FIFO. */
export type Lease = number

/** Acquires a lease, whether a server runs or not. Node opens with close-on-exec, so that no child keeps it by mistake. */
export function acquireLease({ usersFifo }: Cluster): Lease {
  // Opening for writing fails without a reader, so this process is the reader meanwhile.
  const reading = openForReading(usersFifo)
  try {
    return openSync(usersFifo, constants.O_WRONLY | constants.O_NONBLOCK)
  } finally {
    closeSync(reading)
  }
}

/**
 * Releases a lease. If it was the last one, shuts the server down and waits until it has ended.
 * @throws EmbeddedPostgresProblem if the server has not ended within a minute
 */
export async function releaseLease(cluster: Cluster, lease: Lease): Promise<void> {
  closeSync(lease)
  if (isUsed(cluster)) return
  await shutDown(cluster)
  try {
    rmdirSync(cluster.socketDir)
  } catch {
    // A new server has started there, or the folder is gone.
  }
}

async function shutDown(cluster: Cluster): Promise<void> {
  const pid = postmasterPid(cluster)
  if (pid === undefined) return
  // Fast shutdown. The keeper, unless it is gone, sends the same signal, which does no harm.
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
  // The server removes postmaster.pid just before it exits. Bounded, because an orphan that is not reaped stays a zombie.
  for (let tries = 0; signal(pid, 0) && tries < 100; tries++) await pause(2)
}

/**
 * Joins the running server, or starts it.
 * @param leaving aborts a long wait
 * @param onProgress called once if the wait becomes long
 * @returns a connection that ends when the server does, and does not keep Node alive
 * @throws EmbeddedPostgresProblem if neither is possible, with the end of the server's log
 */
export async function joinOrStart(
  cluster: Cluster,
  {
    lease,
    settings,
    leaving,
    onProgress,
  }: { lease: Lease; settings: Record<string, string>; leaving: AbortSignal; onProgress: (step: string) => void },
): Promise<pg.Client> {
  const began = performance.now()
  let lastBusyAt = began
  let starting: Start | undefined
  let isNoticed = false
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 1.5, 250)) {
    await ensureSocketDir(cluster)
    const answer = await connect(cluster)
    if (answer instanceof pg.Client) {
      if (isWatched(lease)) return answer
      // Its keeper was killed, or is stopping it because its last user has just gone.
      if (!(await outlasts(answer, { ms: limits.stoppingMsMax, leaving }))) continue
      if (!isWatched(lease)) keep(cluster)
      return answer
    }
    const pid = postmasterPid(cluster)
    if (starting?.hasEnded) starting = starting.outcome()
    if (starting === undefined && pid === undefined && !isWatched(lease)) starting = start(cluster, settings)
    const now = performance.now()
    if (answer.isBusy) lastBusyAt = now
    if (!isNoticed && now - began > limits.noticeMs) {
      isNoticed = true
      onProgress(`waiting for PostgreSQL, for at most ${limits.busyMsMax / 1_000} s (${answer.message})`)
    }
    const isAbsent = pid === undefined && starting === undefined
    if (now - lastBusyAt > (isAbsent ? limits.absentMsMax : limits.silentMsMax) || now - began > limits.busyMsMax) {
      throw silence(cluster, { pid, waitedMs: now - began, answer: answer.message })
    }
    await pause(pauseMs, undefined, { signal: leaving })
  }
}

/** Whether a connection is still there after some time. */
async function outlasts(client: pg.Client, { ms, leaving }: { ms: number; leaving: AbortSignal }): Promise<boolean> {
  const ended = new AbortController()
  client.once('end', () => ended.abort())
  try {
    await pause(ms, undefined, { signal: AbortSignal.any([ended.signal, leaving]) })
    return true
  } catch (error) {
    if (leaving.aborted) throw error
    return false
  }
}

function silence(
  { dataDir, logFile }: Cluster,
  { pid, waitedMs, answer }: { pid: number | undefined; waitedMs: number; answer: string },
): EmbeddedPostgresProblem {
  const seen = `PostgreSQL in ${dataDir} cannot be reached after ${Math.round(waitedMs / 1000)} s (${answer})`
  const advice =
    pid === undefined
      ? 'if a process in another container uses this folder, give each container its own; ' +
        'otherwise stop every process that uses it, and start again'
      : `process ${pid} runs it: stop it with "kill -INT ${pid}", and start again`
  return new EmbeddedPostgresProblem(`${seen}; ${advice}. The end of ${logFile}: ${endOf(readFrom(logFile, 0))}`)
}

/** Ends the connection that joinOrStart returned. */
export async function endConnection(client: pg.Client): Promise<void> {
  // Otherwise Node could exit before the connection has ended.
  refcounted(client).ref()
  await client.end()
}

/** Methods that pg documents and that are missing in its types. */
function refcounted(client: pg.Client) {
  return client as pg.Client & { ref(): void; unref(): void }
}

/** How to connect as a role. Every field is set, because pg would take missing ones from PG* variables. */
export function connectionTo({ socketDir, names }: Cluster, role: keyof Names['roles']) {
  return { host: socketDir, port: 5432, user: names.roles[role], database: names.database, ssl: false } as const
}

type Refusal = { isBusy: boolean; message: string }

async function connect(cluster: Cluster): Promise<pg.Client | Refusal> {
  const client = new pg.Client({
    ...connectionTo(cluster, 'app'),
    application_name: `${cluster.names.app} embedded`,
    connectionTimeoutMillis: limits.connectMsMax,
    // The connection is idle for the life of the process, whatever limit is set for others.
    options: '-c idle_session_timeout=0',
  })
  // Without a listener a lost connection would end the process; the caller adds one that acts.
  client.on('error', () => undefined)
  try {
    await client.connect()
    // The connection must not keep the process alive.
    refcounted(client).unref()
    return client
  } catch (error) {
    client.end().catch(() => undefined)
    const { code = '', message } = error as pg.DatabaseError
    // 57P03: starting, recovering or shutting down; 53300: too many connections; 57P01: terminated by a shutdown.
    if (/^(57P03|53300|57P01)$/.test(code)) return { isBusy: true, message }
    // Waiting does not change any other SQLSTATE, such as that of a dropped database.
    if (/^[0-9A-Z]{5}$/.test(code) && error instanceof pg.DatabaseError) {
      throw new EmbeddedPostgresProblem(`PostgreSQL in ${cluster.dataDir} refuses the connection: ${message}`)
    }
    return { isBusy: false, message }
  }
}

type Start = {
  hasEnded: boolean
  /** Returns if another attempt makes sense. @throws EmbeddedPostgresProblem if it does not */
  outcome(): undefined
}

/**
 * Starts the server, or takes over one that has lost its keeper ($1 is its process), and keeps it.
 * - Standard input is the reading end of the FIFO, so that the keeper reads it from its start.
 * - A second shell watches the FIFO while the first one waits for the server: when either has ended, the other follows.
 * - INT is repeated, because a server that was forked a moment ago ignores it.
 * - The keeper ignores the signals of a terminal or a service manager, which are for the processes that use the server.
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
      // A concurrent start was first; processes of a crashed server are still ending; the server ran and has ended; the last
      // user of the previous server has just removed the socket's folder.
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

/** Starts a new keeper for a server whose keeper was killed. */
function keep(cluster: Cluster): void {
  const pid = postmasterPid(cluster)
  // The folder is an argument only so that it shows in the process list.
  if (pid !== undefined) spawnKeeper(cluster, [String(pid), cluster.pgdata])
}

function spawnKeeper(cluster: Cluster, args: string[]): ChildProcess {
  const reading = openForReading(cluster.usersFifo)
  const log = openLog(cluster)
  try {
    const child = spawn('/bin/sh', ['-c', keeper, `${cluster.names.app}-keeper`, ...args], {
      ...asUser(cluster.user),
      // No other descriptor is inherited: a pipe that this process writes to must be able to end while the server runs.
      stdio: [reading, log, log],
      // A new session: signals to this process's terminal or process group do not reach the keeper.
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
  // No network: the rights of the socket's folder control access.
  listen_addresses: '',
  port: '5432',
  unix_socket_permissions: '0700',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  // A quarter of a small machine's 1 GB; the operating system's cache does the rest.
  shared_buffers: '256MB',
  // As much as max_wal_size: used segments of the log are kept for reuse. A new one is filled with zeros and synced first, and
  // every commit waits for that, 40 to 120 ms on a virtual disk.
  min_wal_size: '1GB',
  // Several processes, each with a pool of tens, and an operator's queries.
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
  // 64 MiB: years of ordinary operation, or minutes of an error in a loop.
  if ((statSync(logFile, { throwIfNoEntry: false })?.size ?? 0) <= 64 * 1024 * 1024) return
  try {
    renameSync(logFile, `${logFile}.old`)
  } catch (error) {
    // A concurrent start has done it.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Whether any process holds a lease. */
function isUsed({ usersFifo }: Cluster): boolean {
  const reading = openForReading(usersFifo)
  try {
    // End of file means that there is no writer; EAGAIN means that there is one.
    while (readSync(reading, Buffer.alloc(512)) > 0);
    return false
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return true
    throw error
  } finally {
    closeSync(reading)
  }
}

/** Whether a keeper reads the FIFO. Keepers ignore what is written there. */
function isWatched(lease: Lease): boolean {
  try {
    writeSync(lease, '\n')
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

/** The process that runs this cluster; undefined if a crash has left its file behind. */
function postmasterPid({ pgdata }: Cluster): number | undefined {
  const pid = pidIn(join(pgdata, 'postmaster.pid'))
  return pid !== undefined && isPostmasterOf(pgdata, pid) ? pid : undefined
}

/**
 * Removes a lock file that would keep PostgreSQL from starting. It ignores the file of a dead process, but not an empty one,
 * nor one whose process id belongs to another process of the same user after a restart of the machine or the container.
 */
function removeStaleLock(lockFile: string, pgdata: string): void {
  const found = statSync(lockFile, { throwIfNoEntry: false })
  if (found === undefined) return
  const pid = pidIn(lockFile)
  // 10 s: a starting server fills its file at once.
  const isStale =
    pid === undefined ? found.mtimeMs < Date.now() - 10_000 : signal(pid, 0) && !isPostmasterOf(pgdata, pid)
  if (!isStale) return
  const aside = `${lockFile}.stale`
  try {
    renameSync(lockFile, aside)
    // If a concurrent start has written a new file meanwhile, it is put back; PostgreSQL checks for it once a minute.
    if (pidIn(aside) === pid) rmSync(aside)
    else renameSync(aside, lockFile)
  } catch (error) {
    // A concurrent start has removed it.
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

/** True in doubt: the lock of a server that is taken for dead would be removed. */
function isPostmasterOf(pgdata: string, pid: number): boolean {
  if (!signal(pid, 0)) return false
  // macOS has no /proc, so the process id must do.
  if (process.platform !== 'linux') return true
  try {
    if (readFileSync(`/proc/${pid}/comm`, 'utf8').trim() !== 'postgres') return false
  } catch {
    return false
  }
  try {
    // PostgreSQL's working directory is its data folder.
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(pgdata)
  } catch (error) {
    // A container's root may not read it. Any other error: the process has gone, or is a zombie that is not reaped.
    return (error as NodeJS.ErrnoException).code === 'EACCES'
  }
}

/** @returns whether the process exists and may be signalled */
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
