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
import { EmbeddedPostgresProblem } from './problem.ts'
import { firstCommands, superuser } from './roles.ts'
import { canEnter, isRoot, run, type ServerUser, serverUser, thisUser } from './server-user.ts'

/** One database cluster on disk, ready to be started, and the places around it. */
export type Cluster = {
  dataDir: string
  /** PGDATA. Its name carries the major version, so that a later PostgreSQL never opens older data. */
  pgdata: string
  /** The FIFO that every user of the server holds open for writing. */
  usersFifo: string
  socketDir: string
  logFile: string
  /** The folder with bin/postgres. */
  binaries: string
  user: ServerUser
}

/**
 * Finds or makes the folders, the binaries and the cluster. Safe to be killed anywhere in, and to run several times at
 * once: whatever takes long is made under another name and then renamed.
 */
export async function prepareCluster({
  mayCreate = true,
  onProgress = () => undefined,
  ...options
}: {
  dataDir?: string
  checkoutDir: string
  mayCreate?: boolean
  onProgress?: (step: string) => void
}): Promise<Cluster> {
  const binariesPackage = findPackage()
  const pgdataName = `postgres-${binariesPackage.major}`
  const { dataDir, user } = await chooseDataDir(options, pgdataName)
  if (!mayCreate && !existsSync(join(dataDir, pgdataName, 'PG_VERSION')))
    throw new EmbeddedPostgresProblem(`There is no database in ${dataDir} yet: npm start creates one`)
  sweep(dataDir)
  const binaries = await prepareBinaries(binariesPackage, { dataDir, user, onProgress })
  const cluster = {
    dataDir,
    pgdata: join(dataDir, pgdataName),
    usersFifo: join(dataDir, `${pgdataName}.users`),
    // A socket's path has at most 107 bytes, a data folder's may have more.
    socketDir: `/tmp/openwage-${sha256(dataDir).slice(0, 12)}`,
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
      `The database in ${cluster.pgdata} was written by PostgreSQL ${version}, and this is ${binariesPackage.major}: ` +
        'move that folder away, or start the version of Openwage that wrote it',
    )
  }
  await ensureUsersFifo(cluster)
  return cluster
}

/**
 * The first of these that the server's user can reach: what the operator asked for and nothing else; `data` in the
 * checkout; a folder below /var/lib that belongs to this checkout alone.
 */
async function chooseDataDir(
  { dataDir, checkoutDir }: { dataDir?: string; checkoutDir: string },
  pgdataName: string,
): Promise<{ dataDir: string; user: ServerUser }> {
  const inCheckout = resolve(checkoutDir, 'data')
  const realCheckout = realpathSync(checkoutDir)
  const elsewhere = `/var/lib/openwage/${basename(realCheckout)}-${sha256(realCheckout).slice(0, 8)}`
  const refusals: string[] = []
  for (const folder of dataDir === undefined ? [inCheckout, elsewhere] : [resolve(dataDir)]) {
    const user = serverUser(join(folder, pgdataName))
    const refusal = await reach(folder, user)
    if (refusal === undefined) return { dataDir: realpathSync(folder), user }
    refusals.push(refusal)
    // Data that has become unreachable must not be answered with an empty database somewhere else.
    if (existsSync(join(folder, pgdataName))) break
  }
  throw new EmbeddedPostgresProblem(
    `${refusals.join('; and ')}: let that user in, choose another data folder, ` +
      'or set DATABASE_URL to a PostgreSQL server of your own',
  )
}

/**
 * Makes the folder if it can, and sees to it that the server's user gets there. Only folders that are made here get
 * their rights from here.
 * @returns why not, or nothing when all is well
 */
async function reach(folder: string, user: ServerUser): Promise<string | undefined> {
  const isThere = existsSync(folder)
  const lowest = isThere ? folder : lowestExisting(folder)
  if (!(await canEnter(lowest, user))) return `The user ${user.name}, who runs PostgreSQL, cannot enter ${lowest}`
  if (!isThere) {
    // Not root's own umask: with 077 the server's user could not pass through what root makes here.
    const { ok, said } = await run(
      '/bin/sh',
      ['-c', `${isRoot ? 'umask 022;' : ''} mkdir -p "$1"`, 'sh', folder],
      thisUser(),
    )
    if (!ok) return `The folder ${folder} cannot be made (${said})`
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

/** Removes what a killed start left half-made. */
function sweep(dataDir: string): void {
  // 10 min: making a cluster or a copy takes seconds; what is older belongs to nobody.
  const abandonedBefore = Date.now() - 10 * 60_000
  for (const name of readdirSync(dataDir)) {
    if (!name.startsWith('.unfinished-')) continue
    const path = join(dataDir, name)
    const made = statSync(path, { throwIfNoEntry: false })
    if (made && made.mtimeMs < abandonedBefore) rmSync(path, { recursive: true, force: true })
  }
}

async function initialise({ dataDir, pgdata, binaries, user }: Cluster): Promise<void> {
  const unfinished = mkdtempSync(join(dataDir, '.unfinished-'))
  try {
    if (isRoot) chownSync(unfinished, user.uid, user.gid)
    await must(join(binaries, 'bin/initdb'), [
      ...['-D', unfinished, '-U', superuser, '--no-instructions', '--data-checksums'],
      // The same order and upper case on every machine, independent of its C library.
      ...['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
      // The socket's folder admits only the server's user and root, which could as well open the data files: a password would
      // protect nothing.
      ...['--auth-local=trust', '--auth-host=reject'],
    ])
    await must(join(binaries, 'bin/postgres'), ['--single', '-D', unfinished, '-c', 'exit_on_error=on', 'template1'], {
      input: firstCommands,
    })
    renameSync(unfinished, pgdata)
    // Without this a power cut could undo the rename, and with it everything that was committed since.
    syncFolder(dataDir)
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true })
    // Another start was first: its cluster is as good as ours.
    if (existsSync(join(pgdata, 'PG_VERSION'))) return
    if (existsSync(pgdata)) {
      throw new EmbeddedPostgresProblem(
        `The folder ${pgdata} is not empty and not a PostgreSQL database either: move it away, or choose another data folder`,
      )
    }
    throw error
  }

  async function must(command: string, args: string[], options = {}): Promise<void> {
    const { ok, said } = await run(command, args, user, options)
    if (!ok) {
      throw new EmbeddedPostgresProblem(`A new database could not be made in ${dataDir}: ${said.split('\n').at(-1)}`)
    }
  }
}

function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r')
  fsyncSync(fd)
  closeSync(fd)
}

async function ensureUsersFifo({ usersFifo, dataDir, user }: Cluster): Promise<void> {
  if (lstatSync(usersFifo, { throwIfNoEntry: false })?.isFIFO()) return
  const { said } = await run('mkfifo', ['-m', '600', usersFifo], thisUser())
  // Not by the exit code: two starts may make it at once.
  if (lstatSync(usersFifo, { throwIfNoEntry: false })?.isFIFO()) {
    if (isRoot) chownSync(usersFifo, user.uid, user.gid)
    return
  }
  throw new EmbeddedPostgresProblem(
    `A named pipe cannot be made in ${dataDir} (${said}): choose a data folder on a disk of this machine`,
  )
}

/** @throws EmbeddedPostgresProblem when somebody else has put something in the socket's place, to be talked to instead */
export async function ensureSocketDir({ socketDir, user }: Cluster): Promise<void> {
  // Made by the server's user, so that it never is anybody else's, not even for a moment.
  if (!existsSync(socketDir)) await run('mkdir', ['-m', '700', socketDir], user)
  const found = lstatSync(socketDir, { throwIfNoEntry: false })
  if (found?.isDirectory() && found.uid === user.uid && (found.mode & 0o777) === 0o700) return
  throw new EmbeddedPostgresProblem(
    `${socketDir} must be a folder that belongs to ${user.name} and that nobody else may enter: remove it, and start again`,
  )
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
