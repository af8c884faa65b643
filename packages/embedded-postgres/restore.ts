import {
  chmodSync,
  existsSync,
  lchownSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { findPackage } from './binaries.ts'
import { chooseDataDir, restorePrefix, sweep, syncFolder } from './cluster.ts'
import { EmbeddedPostgresProblem } from './problem.ts'
import type { Names } from './roles.ts'
import { postmasterPid } from './server.ts'
import { isRoot } from './server-user.ts'

/** A data folder in which a backup is restored, inside the configured one, so that both are on one disk. */
export type Restoring = {
  /** The data folder for `startEmbeddedPostgres`. */
  dataDir: string
  /** The configured data folder. */
  configuredDir: string
  /** Moves the restored cluster to the configured data folder. The server must have stopped. */
  place(): void
  /** Removes what was restored. */
  remove(): void
}

const limits = {
  // Far less than `sweep` waits.
  beatMs: 60_000,
  killMsMax: 10_000,
}

type RestoreOptions = {
  names: Names
  dataDir?: string
  checkoutDir: string
  beside?: boolean
  fill: (folder: string) => Promise<void>
}

/**
 * Puts the files of a backup where a server can recover them.
 * @param options.dataDir the folder that the operator configured; see `startEmbeddedPostgres`
 * @param options.beside the server in the configured folder stays, and the restored one is only looked at
 * @param options.fill writes the files of the backup into an empty folder, and syncs them
 * @throws EmbeddedPostgresProblem if the configured folder has a database, unless `beside`
 */
export async function beginRestore({ beside = false, fill, ...where }: RestoreOptions): Promise<Restoring> {
  const pgdataName = `postgres-${findPackage().major}`
  const { dataDir, user } = await chooseDataDir(where, pgdataName)
  const pgdata = join(dataDir, pgdataName)
  const refuseIfThere = () => {
    if (existsSync(pgdata) && !beside)
      throw new EmbeddedPostgresProblem(
        `There is a database in ${dataDir}, which a restore would replace: move ${pgdata} away, or choose another data folder`,
      )
  }
  refuseIfThere()
  sweep(dataDir)
  const staging = mkdtempSync(join(dataDir, restorePrefix))
  // Says to `sweep` of other processes that this one is alive.
  const beat = setInterval(() => utimesSync(staging, new Date(), new Date()), limits.beatMs).unref()
  const remove = () => {
    clearInterval(beat)
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, onSignal)
    // A server that was just killed may still write.
    rmSync(staging, { recursive: true, force: true, maxRetries: 10 })
  }
  const onSignal = (name: 'SIGINT' | 'SIGTERM') => {
    killServer(join(staging, pgdataName))
    remove()
    process.exit(128 + constants.signals[name])
  }
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, onSignal)
  try {
    // PostgreSQL's user must enter it; the cluster in it is closed to others.
    chmodSync(staging, 0o755)
    const folder = join(staging, pgdataName)
    const unfinished = mkdtempSync(join(staging, '.unfinished-'))
    await fill(unfinished)
    writeFileSync(join(unfinished, 'recovery.signal'), '')
    if (isRoot) giveTo(unfinished, user)
    renameSync(unfinished, folder)
    return {
      dataDir: staging,
      configuredDir: dataDir,
      place() {
        refuseIfThere()
        renameSync(folder, pgdata)
        syncFolder(dataDir)
        remove()
      },
      remove,
    }
  } catch (error) {
    remove()
    throw error
  }
}

/** Without the event loop, which would start the server again. */
function killServer(pgdata: string): void {
  const pid = postmasterPid({ pgdata })
  if (pid === undefined) return
  process.kill(pid, 'SIGQUIT')
  const deadline = performance.now() + limits.killMsMax
  const sleeper = new Int32Array(new SharedArrayBuffer(4))
  while (postmasterPid({ pgdata }) === pid && performance.now() < deadline) Atomics.wait(sleeper, 0, 0, 20)
}

/** The folder itself last: until then, no other user enters it, and replaces a file by a link. */
function giveTo(path: string, user: { uid: number; gid: number }): void {
  for (const entry of readdirSync(path, { recursive: true, encoding: 'utf8' }))
    lchownSync(join(path, entry), user.uid, user.gid)
  lchownSync(path, user.uid, user.gid)
}
