import { createHash } from 'node:crypto'
import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { findPackage, prepareBinaries } from './binaries.ts'
import { EmbeddedPostgresProblem, useOwnServer } from './problem.ts'
import { firstCommands, type Names, superuser } from './roles.ts'
import { canEnter, isRoot, run, type ServerUser, serverUser, thisUser } from './server-user.ts'

/** One database cluster on disk, ready to be started, and the paths around it. */
export type Cluster = {
  names: Names
  dataDir: string
  /** PGDATA. The folder name contains the major version, so that a later PostgreSQL never opens older data. */
  pgdata: string
  /** The FIFO that every process using the server holds open for writing. */
  usersFifo: string
  /** Where the server leaves its requests to archive or restore its WAL. Exists if its WAL is archived. */
  requestsDir: string
  socketDir: string
  logFile: string
  /** The folder with bin/postgres. */
  binaries: string
  user: ServerUser
}

type ClusterOptions = {
  names: Names
  dataDir?: string
  checkoutDir: string
  mayCreate?: boolean
  onCreate?: (dataDir: string) => void
  onProgress?: (step: string) => void
}

/**
 * Finds or creates the folders, the binaries and the cluster. Safe to kill at any point and to run concurrently: slow steps
 * create under a temporary name and then rename.
 */
export async function prepareCluster(options: ClusterOptions): Promise<Cluster> {
  const { names, mayCreate = true, onCreate = () => undefined, onProgress = () => undefined } = options
  const binariesPackage = findPackage()
  const pgdataName = `postgres-${binariesPackage.major}`
  const { dataDir, user } = await chooseDataDir(options, pgdataName)
  if (!mayCreate && !existsSync(join(dataDir, pgdataName, 'PG_VERSION')))
    throw new EmbeddedPostgresProblem(`There is no database in ${dataDir} yet: npm start creates one`)
  if (!existsSync(join(dataDir, pgdataName, 'PG_VERSION'))) onCreate(dataDir)
  sweep(dataDir)
  const binaries = await prepareBinaries(binariesPackage, { dataDir, user, onProgress })
  const cluster = {
    names,
    dataDir,
    pgdata: join(dataDir, pgdataName),
    usersFifo: join(dataDir, `${pgdataName}.users`),
    requestsDir: join(dataDir, `${pgdataName}.requests`),
    // A socket path must not exceed 107 bytes, but the path of a data folder may.
    socketDir: `/tmp/${names.app}-${sha256(dataDir).slice(0, 12)}`,
    logFile: join(dataDir, 'postgresql.log'),
    binaries,
    user,
  }
  if (!existsSync(join(cluster.pgdata, 'PG_VERSION'))) {
    onProgress('creating the database')
    await initialise(cluster)
  }
  const version = readFileSync(join(cluster.pgdata, 'PG_VERSION'), 'utf8').trim()
  if (version !== String(binariesPackage.major)) {
    throw new EmbeddedPostgresProblem(
      `The database in ${cluster.pgdata} was written by PostgreSQL ${version}, but this is version ${binariesPackage.major}: ` +
        'move that folder away, or start the version of this program that wrote it',
    )
  }
  await ensureUsersFifo(cluster)
  return cluster
}

/**
 * Chooses the data folder. If the operator configured one, only that folder is tried. Otherwise, returns the first that the
 * server's user can reach: `data` in the checkout, or this checkout's own folder below /var/lib.
 */
export async function chooseDataDir(
  { names, dataDir, checkoutDir }: { names: Names; dataDir?: string; checkoutDir: string },
  pgdataName: string,
): Promise<{ dataDir: string; user: ServerUser }> {
  const inCheckout = resolve(checkoutDir, 'data')
  const realCheckout = realpathSync(checkoutDir)
  const elsewhere = `/var/lib/${names.app}/${basename(realCheckout)}-${sha256(realCheckout).slice(0, 8)}`
  const refusals: string[] = []
  for (const folder of dataDir === undefined ? [inCheckout, elsewhere] : [resolve(dataDir)]) {
    const user = serverUser(join(folder, pgdataName))
    const refusal = await reach(folder, user)
    if (refusal === undefined) return { dataDir: realpathSync(folder), user }
    refusals.push(refusal)
    // If existing data has become unreachable, an empty database in another folder would look like data loss.
    if (existsSync(join(folder, pgdataName))) break
  }
  throw new EmbeddedPostgresProblem(
    `${refusals.join('; and ')}: let that user in, choose another data folder, or ${useOwnServer}`,
  )
}

/**
 * Creates the folder if necessary and checks that the server's user can enter it. Does not change permissions of existing
 * folders.
 * @returns why the folder cannot be used; undefined if it can
 */
async function reach(folder: string, user: ServerUser): Promise<string | undefined> {
  const isThere = existsSync(folder)
  const lowest = isThere ? folder : lowestExisting(folder)
  if (!(await canEnter(lowest, user))) return `The user ${user.name}, which runs PostgreSQL, cannot enter ${lowest}`
  if (!isThere) {
    // With a strict umask of root, such as 077, the server's user could not enter the folders created here.
    const { ok, said } = await run(
      '/bin/sh',
      ['-c', `${isRoot ? 'umask 022;' : ''} mkdir -p "$1"`, 'sh', folder],
      thisUser(),
    )
    if (!ok) return `The folder ${folder} cannot be created (${said})`
  }
  try {
    accessSync(folder, constants.W_OK)
    return undefined
  } catch {
    return `The folder ${folder} cannot be written to`
  }
}

function lowestExisting(folder: string): string {
  const parent = dirname(folder)
  return existsSync(parent) ? parent : lowestExisting(parent)
}

/** Begins the names of the folders in which backups are restored. */
export const restorePrefix = '.restore-'

/** Removes leftovers of killed starts and restores. */
export function sweep(dataDir: string): void {
  // 10 min: creating a cluster or a copy takes seconds, and a restore touches its folder, so older leftovers are abandoned.
  const abandonedBefore = Date.now() - 10 * 60_000
  for (const name of readdirSync(dataDir)) {
    if (!name.startsWith('.unfinished-') && !name.startsWith(restorePrefix)) continue
    const path = join(dataDir, name)
    const made = statSync(path, { throwIfNoEntry: false })
    if (made && made.mtimeMs < abandonedBefore) rmSync(path, { recursive: true, force: true })
  }
}

async function initialise({ names, dataDir, pgdata, binaries, user }: Cluster): Promise<void> {
  const unfinished = mkdtempSync(join(dataDir, '.unfinished-'))
  try {
    if (isRoot) chownSync(unfinished, user.uid, user.gid)
    await must(join(binaries, 'bin/initdb'), [
      ...['-D', unfinished, '-U', superuser, '--no-instructions', '--data-checksums'],
      // The same sort order and case mapping on every machine, independent of its C library.
      ...['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
      // Only the server's user and root can enter the socket's folder, and both can read the data files: a password would
      // protect nothing.
      ...['--auth-local=trust', '--auth-host=reject'],
    ])
    await must(join(binaries, 'bin/postgres'), ['--single', '-D', unfinished, '-c', 'exit_on_error=on', 'template1'], {
      input: firstCommands(names),
    })
    renameSync(unfinished, pgdata)
    // Without this, a power cut could undo the rename and lose everything committed since.
    syncFolder(dataDir)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    // A concurrent start was first and created the same cluster.
    if (existsSync(join(pgdata, 'PG_VERSION'))) return
    if (existsSync(pgdata)) {
      throw new EmbeddedPostgresProblem(
        `The folder ${pgdata} is neither empty nor a PostgreSQL database: move it away, or choose another data folder`,
      )
    }
    throw error
  }

  async function must(command: string, args: string[], options = {}): Promise<void> {
    const { ok, said } = await run(command, args, user, options)
    if (!ok) {
      throw new EmbeddedPostgresProblem(`A new database could not be created in ${dataDir}: ${said.split('\n').at(-1)}`)
    }
  }
}

export function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r')
  fsyncSync(fd)
  closeSync(fd)
}

async function ensureUsersFifo({ usersFifo, dataDir, user }: Cluster): Promise<void> {
  if (lstatSync(usersFifo, { throwIfNoEntry: false })?.isFIFO()) return
  const { said } = await run('mkfifo', ['-m', '600', usersFifo], thisUser())
  // The exit code does not help, because two starts may create the FIFO at once.
  if (lstatSync(usersFifo, { throwIfNoEntry: false })?.isFIFO()) {
    if (isRoot) chownSync(usersFifo, user.uid, user.gid)
    return
  }
  throw new EmbeddedPostgresProblem(
    `A named pipe cannot be created in ${dataDir} (${said}): choose a data folder on a disk of this machine`,
  )
}

/** @throws EmbeddedPostgresProblem if another user owns the socket's folder and could impersonate the server */
export async function ensureSocketDir({ socketDir, user }: Cluster): Promise<void> {
  // Created by the server's user, so that no other user ever owns it.
  if (!existsSync(socketDir)) await run('mkdir', ['-m', '700', socketDir], user)
  const found = lstatSync(socketDir, { throwIfNoEntry: false })
  if (found?.isDirectory() && found.uid === user.uid && (found.mode & 0o777) === 0o700) return
  throw new EmbeddedPostgresProblem(
    `${socketDir} must be a folder that belongs to ${user.name} and that no other user may enter: remove it and start again`,
  )
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
