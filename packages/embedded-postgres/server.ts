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
import { availableParallelism, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { type Cluster, ensureSocketDir } from './cluster.ts'
import { EmbeddedPostgresProblem } from './problem.ts'
import { type Names, superuser } from './roles.ts'
import { asUser, isRoot } from './server-user.ts'

// The server runs exactly as long as a process uses it. Each such process holds a lease: an open FIFO for writing, which the
// kernel closes when the process ends, even by kill -9. A keeper, which is a small shell, reads the FIFO. End of file means that
// the last lease is gone, so the keeper stops the server. A process that finds the server without a keeper starts a new keeper.
// The last lease holder also stops the server, so that nothing keeps running if the keeper was killed. No server is started
// while the FIFO has a reader: PostgreSQL's own lock is a process id, which is meaningless in another container that shares the
// folder.

const limits = {
  // If no process runs the server: another container uses the folder.
  absentMsMax: 15_000,
  // If a process runs the server but does not respond: a machine that is starting up can be slow.
  silentMsMax: 60_000,
  // If the server is recovering from a crash, or shutting down.
  busyMsMax: 120_000,
  saidAfterMs: 5_000,
  shutdownMsMax: 60_000,
  connectMsMax: 5_000,
  // A keeper repeats its stop signal every second.
  stoppingMsMax: 2_000,
}

/** The right to use the server: a descriptor of the FIFO. */
export type Lease = number

/** Acquires a lease, whether or not a server runs. Node opens with close-on-exec, so child processes do not inherit the lease. */
export function acquireLease({ usersFifo }: Cluster): Lease {
  // Opening for writing fails without a reader, so this process reads in the meantime.
  const reading = openForReading(usersFifo)
  try {
    return openSync(usersFifo, constants.O_WRONLY | constants.O_NONBLOCK)
  } finally {
    closeSync(reading)
  }
}

/**
 * Releases a lease. If it was the last lease, shuts the server down and waits for the end.
 * @throws EmbeddedPostgresProblem if the server has not ended within a minute
 */
export async function releaseLease(cluster: Cluster, lease: Lease): Promise<void> {
  closeSync(lease)
  if (isUsed(cluster)) return
  await shutDown(cluster)
  try {
    rmdirSync(cluster.socketDir)
  } catch {
    // A new server has started in the folder, or the folder is gone.
  }
}

async function shutDown(cluster: Cluster): Promise<void> {
  const pid = postmasterPid(cluster)
  if (pid === undefined) return
  // Fast shutdown. The keeper may send the same signal, which is harmless.
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
  // The server removes postmaster.pid just before exiting. Bounded, because an orphan that is not reaped stays a zombie.
  for (let tries = 0; signal(pid, 0) && tries < 100; tries++) await pause(2)
}

type Joining = {
  lease: Lease
  settings: Record<string, string>
  isRestoring?: boolean
  leaving: AbortSignal
  onProgress: (step: string) => void
}

/**
 * Joins the running server, or starts it.
 * @param leaving aborts a long wait
 * @param onProgress called once if the wait is long
 * @returns a connection that ends with the server and does not keep Node alive
 * @throws EmbeddedPostgresProblem if neither is possible, with the end of the server's log
 */
export async function joinOrStart(
  cluster: Cluster,
  { lease, settings, isRestoring = false, leaving, onProgress }: Joining,
): Promise<pg.Client> {
  // The recovery of a day's WAL can take an hour.
  const busyMsMax = isRestoring ? Number.POSITIVE_INFINITY : limits.busyMsMax
  const began = performance.now()
  let lastBusyAt = began
  let starting: Start | undefined
  let isSaid = false
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 1.5, 250)) {
    await ensureSocketDir(cluster)
    const answer = await connect(cluster)
    if (answer instanceof pg.Client) {
      if (isWatched(lease)) return answer
      // The keeper was killed, or is stopping the server because the last lease was just released.
      if (!(await outlasts(answer, { ms: limits.stoppingMsMax, leaving }))) continue
      if (!isWatched(lease)) keep(cluster)
      return answer
    }
    const pid = postmasterPid(cluster)
    if (starting?.hasEnded) starting = starting.outcome()
    if (starting === undefined && pid === undefined && !isWatched(lease))
      starting = start(cluster, { settings, isRestoring })
    const now = performance.now()
    if (answer.isBusy) lastBusyAt = now
    if (!isSaid && now - began > limits.saidAfterMs) {
      isSaid = true
      const atMost = isRestoring ? '' : `, for at most ${busyMsMax / 1_000} s`
      onProgress(`waiting for PostgreSQL${atMost} (${answer.message})`)
    }
    const isAbsent = pid === undefined && starting === undefined
    if (now - lastBusyAt > (isAbsent ? limits.absentMsMax : limits.silentMsMax) || now - began > busyMsMax) {
      throw unreachableProblem(cluster, { pid, waitedMs: now - began, answer: answer.message })
    }
    await pause(pauseMs, undefined, { signal: leaving })
  }
}

/** Whether a connection is still open after some time. */
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

function unreachableProblem(
  { dataDir, logFile }: Cluster,
  { pid, waitedMs, answer }: { pid: number | undefined; waitedMs: number; answer: string },
): EmbeddedPostgresProblem {
  const seen = `PostgreSQL in ${dataDir} cannot be reached after ${Math.round(waitedMs / 1000)} s (${answer})`
  const advice =
    pid === undefined
      ? 'if a process in another container uses this folder, give each container its own; ' +
        'otherwise stop every process that uses it and start again'
      : `process ${pid} runs it: stop that process with "kill -INT ${pid}" and start again`
  return new EmbeddedPostgresProblem(`${seen}; ${advice}. The end of ${logFile}: ${endOf(readFrom(logFile, 0))}`)
}

/** Ends the connection that joinOrStart returned. */
export async function endConnection(client: pg.Client): Promise<void> {
  // Otherwise Node could exit before the connection has ended.
  refcounted(client).ref()
  await client.end()
}

/** Methods that pg documents but its types lack. */
function refcounted(client: pg.Client) {
  return client as pg.Client & { ref(): void; unref(): void }
}

/** The connection settings of a role. Every field is set, because pg takes missing ones from PG* variables. */
export function connectionTo({ socketDir, names }: Cluster, role: keyof Names['roles'] | 'superuser') {
  const user = role === 'superuser' ? superuser : names.roles[role]
  return { host: socketDir, port: 5432, user, database: names.database, ssl: false } as const
}

type Refusal = { isBusy: boolean; message: string }

async function connect(cluster: Cluster): Promise<pg.Client | Refusal> {
  const client = new pg.Client({
    ...connectionTo(cluster, 'app'),
    application_name: `${cluster.names.app} embedded`,
    connectionTimeoutMillis: limits.connectMsMax,
    // The connection is idle for the life of the process, so the limit for other connections must not apply.
    options: '-c idle_session_timeout=0',
  })
  // Without a listener, a lost connection would end the process. The caller adds a listener that restarts the server.
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
    // Waiting does not help with any other SQLSTATE, such as a dropped database.
    if (/^[0-9A-Z]{5}$/.test(code) && error instanceof pg.DatabaseError) {
      throw new EmbeddedPostgresProblem(`PostgreSQL in ${cluster.dataDir} refuses the connection: ${message}`)
    }
    return { isBusy: false, message }
  }
}

type Start = {
  hasEnded: boolean
  /** Returns if another attempt makes sense. @throws EmbeddedPostgresProblem if not */
  outcome(): undefined
}

/**
 * Starts the server, or takes over a server without a keeper ($1 is the server's process id), and watches it.
 * - Standard input is the reading end of the FIFO, so that the keeper is a reader from the start.
 * - A second shell watches the FIFO while the first waits for the server. When either ends, the other follows.
 * - INT is repeated, because a server that was just forked ignores it.
 * - The keeper ignores signals from a terminal or service manager, which are meant for the processes that use the server.
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

function start(
  cluster: Cluster,
  { settings, isRestoring }: { settings: Record<string, string>; isRestoring: boolean },
): Start {
  const { logFile, pgdata, socketDir, binaries } = cluster
  removeStaleLock(join(pgdata, 'postmaster.pid'), pgdata)
  removeStaleLock(join(socketDir, '.s.PGSQL.5432.lock'), pgdata)
  rotateLog(cluster)
  const logStart = statSync(logFile, { throwIfNoEntry: false })?.size ?? 0
  const options = Object.entries({
    ...serverSettings,
    ...machineSettings(),
    unix_socket_directories: socketDir,
    ...settings,
  })
  const child = spawnKeeper(cluster, [
    '',
    ...[join(binaries, 'bin/postgres'), '-D', pgdata],
    ...options.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ])
  const starting: Start = {
    hasEnded: false,
    outcome() {
      const said = readFrom(logFile, logStart)
      // Unless a recovery has failed, which it would again: a concurrent start was first; processes of a crashed server are still ending; the server ran and has ended; or the last
      // user of the previous server has just removed the socket's folder.
      const passing =
        /lock file .* (already exists|is empty)|is still in use|database system is (ready|shut down)|\.lock": No such file/
      if (passing.test(said) && !isRestoring) return
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
  // The folder is an argument only to be visible in the process list.
  if (pid !== undefined) spawnKeeper(cluster, [String(pid), cluster.pgdata])
}

function spawnKeeper(cluster: Cluster, args: string[]): ChildProcess {
  const reading = openForReading(cluster.usersFifo)
  const log = openLog(cluster)
  try {
    const child = spawn('/bin/sh', ['-c', keeper, `${cluster.names.app}-keeper`, ...args], {
      ...asUser(cluster.user),
      // No other descriptors are inherited: pipes that this process writes to must be able to close while the server runs.
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
  // No network: the permissions of the socket's folder control access.
  listen_addresses: '',
  port: '5432',
  unix_socket_permissions: '0700',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  // Equal to max_wal_size, so that used WAL segments are kept for reuse. A new segment is first filled with zeros and synced, and
  // every commit waits for that: 40 to 120 ms on a virtual disk.
  min_wal_size: '1GB',
  // Several processes, each with a pool of tens of connections, plus an operator's queries.
  max_connections: '200',
  // Details and statements in the log could contain names and bank details.
  log_error_verbosity: 'terse',
  log_min_error_statement: 'panic',
} as const

/**
 * The settings that follow the machine.
 * @param machine.memoryBytes the memory that this process may use, which a container limits
 */
export function machineSettings({
  memoryBytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
  processors = availableParallelism(),
} = {}): Record<string, string> {
  // A quarter; the operating system's cache does the rest. The service and other programs may share a small machine.
  const quarter = Math.floor(memoryBytes / 4 / 2 ** 20)
  return {
    shared_buffers: `${Math.min(Math.max(quarter, 128), 4_096)}MB`,
    // Whole pages are most of what is written after a checkpoint. Compressing them takes time that two processors need for requests.
    wal_compression: processors > 2 ? 'pglz' : 'off',
  }
}

function openLog({ logFile, user }: Cluster): number {
  const log = openSync(logFile, 'a', 0o600)
  if (isRoot) fchownSync(log, user.uid, user.gid)
  return log
}

/** Keeps one old log. */
function rotateLog({ logFile }: Cluster): void {
  // 64 MiB: years of ordinary operation, or minutes of an error in a loop.
  if ((statSync(logFile, { throwIfNoEntry: false })?.size ?? 0) <= 64 * 1024 * 1024) return
  try {
    renameSync(logFile, `${logFile}.old`)
  } catch (error) {
    // A concurrent start has rotated the log.
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

/** Whether a keeper reads the FIFO. Keepers ignore the data. */
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

/** The process that runs this cluster; undefined if there is none or the pid file is a leftover of a crash. */
export function postmasterPid({ pgdata }: Pick<Cluster, 'pgdata'>): number | undefined {
  const pid = pidIn(join(pgdata, 'postmaster.pid'))
  return pid !== undefined && isPostmasterOf(pgdata, pid) ? pid : undefined
}

/**
 * Removes a lock file that would keep PostgreSQL from starting. PostgreSQL ignores the file of a dead process, but not an empty
 * file, nor a process id that another process of the same user has after a restart of the machine or container.
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
    // If a concurrent start has just written a new file, put the file back; PostgreSQL checks for it once a minute.
    if (pidIn(aside) === pid) rmSync(aside)
    else renameSync(aside, lockFile)
  } catch (error) {
    // A concurrent start has removed the file.
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

/** Returns true if in doubt: otherwise, the lock of a running server could be removed. */
function isPostmasterOf(pgdata: string, pid: number): boolean {
  if (!signal(pid, 0)) return false
  // macOS has no /proc, so only the process id can be checked.
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
    // In a container, root may not be allowed to read the link. Any other error means that the process is gone or a zombie.
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
