import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, lchownSync, mkdirSync, readdirSync, renameSync, watch, writeFileSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Cluster } from './cluster.ts'
import { isRoot } from './server-user.ts'

// PostgreSQL archives and restores segments of its WAL by shell commands, as its own user, which may be unable to run Node or to reach
// the archive. So the command is a script that leaves a request in a folder, and waits for a process that uses the server to serve it:
//   KIND-NAME.wanted   the request
//   KIND-NAME.taken    a process works on it
//   KIND-NAME.done, KIND-NAME.missing or KIND-NAME.failed   the result; `failed` holds the reason
//   KIND-NAME.file     the restored segment
// The folder belongs to PostgreSQL's user, but the process may be root. So the process opens only files that it has just created, and
// never follows a link. The script is in the data folder, where that user cannot replace it.

/** What a process does for the server. The functions may be called twice for the same segment, also concurrently. */
export type WalCommands = {
  /**
   * Archives a segment of the WAL, or another file of its history. Returns once the copy is durable.
   * @param path where it is now
   */
  archive?: (segment: string, path: string) => Promise<void>
  /**
   * Restores a file of the archive.
   * @param file where to write it
   * @returns false if the archive does not have it, which ends a recovery
   * @throws if the archive cannot be read, which aborts a recovery
   */
  restore?: (segment: string, file: FileHandle) => Promise<boolean>
}

const limits = {
  // A request is taken at once, unless no process serves the folder.
  pollMs: 250,
}

/**
 * Arguments: the folder, the kind, the name and the path of the segment. PostgreSQL retries an exit code of 1. A code above 125 aborts a
 * recovery, and keeps the archiver from retrying while the server shuts down.
 */
const script = `
request=$1/$2-$3
hard=1
is_stopping() { [ "$(sed -n 8p postmaster.pid 2>/dev/null | tr -d ' ')" = stopping ]; }
if [ "$2" = restore ]; then hard=255; fi
give_up() {
  rm -f "$request".*
  echo "$1" >&2
  if is_stopping; then exit 255; fi
  exit $hard
}
rm -f "$request".*
: >"$request.wanted" || exit $hard
tries=0
while [ -e "$request.wanted" ]; do
  tries=$((tries + 1))
  if [ $tries -gt 60 ]; then give_up "no process serves the request to $2 $3"; fi
  sleep 0.02
done
tries=0
while :; do
  if [ -e "$request.done" ]; then
    if [ "$2" = restore ]; then mv "$request.file" "$4" || exit 255; fi
    rm -f "$request.done"
    exit 0
  fi
  if [ -e "$request.missing" ]; then rm -f "$request.missing"; exit 1; fi
  if [ -e "$request.failed" ]; then give_up "$(cat "$request.failed")"; fi
  tries=$((tries + 1))
  # 2 min. While the server shuts down 10 s: the segment is archived after the next start.
  if [ $tries -gt 6000 ]; then give_up "the request to $2 $3 takes too long"; fi
  if [ $tries -gt 500 ] && is_stopping; then give_up "the request to $2 $3 takes too long"; fi
  sleep 0.02
done
`

/** Whether the WAL of a cluster is archived. Every start keeps it so, or the archive would have a gap. */
export function isArchived({ requestsDir }: Cluster): boolean {
  return existsSync(requestsDir)
}

/** The settings of a server whose WAL is archived or restored by requests. Creates the folder. */
export function requestSettings(
  cluster: Cluster,
  { restores, archives }: { restores: boolean; archives: boolean },
): Record<string, string> {
  const { requestsDir, user } = cluster
  mkdirSync(requestsDir, { recursive: true, mode: 0o700 })
  if (isRoot) lchownSync(requestsDir, user.uid, user.gid)
  const scriptFile = `${requestsDir}.sh`
  const part = join(cluster.dataDir, `.unfinished-${randomBytes(6).toString('hex')}`)
  writeFileSync(part, script, { flag: 'wx' })
  // PostgreSQL's user must read it, whatever the umask of root.
  chmodSync(part, 0o644)
  renameSync(part, scriptFile)
  const command = (kind: string) => `/bin/sh ${quoted(scriptFile)} ${quoted(requestsDir)} ${kind} %f %p`
  return {
    // Clients wait until a recovery has ended, instead of reading from a server that recovers.
    ...(restores ? { restore_command: command('restore'), hot_standby: 'off' } : {}),
    ...(archives
      ? { archive_mode: 'on', archive_command: command('archive'), archive_timeout: `${archiveTimeoutSeconds}` }
      : {}),
  }
}

// What was committed up to a minute before a disk is lost is lost. Without it, a segment is archived once it is full, which takes a small
// installation hours.
const archiveTimeoutSeconds = 60

/** An argument of a shell, in a setting where % has a meaning. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`).replaceAll('%', '%%')}'`
}

/** Serves the requests of a server until it is stopped. */
export function serveRequests(cluster: Cluster, commands: WalCommands): { stop(): Promise<void> } {
  const { requestsDir } = cluster
  const working = new Set<Promise<void>>()
  let isStopped = false
  const look = () => {
    if (isStopped) return
    for (const name of namesIn(requestsDir)) {
      const [, kind, segment] = /^(archive|restore)-([\w.]+)\.wanted$/.exec(name) ?? []
      if (segment === undefined || commands[kind as keyof WalCommands] === undefined) continue
      const request = join(requestsDir, `${kind}-${segment}`)
      if (!move(`${request}.wanted`, `${request}.taken`)) continue
      const work = serve(cluster, commands, { kind, segment, request }).finally(() => working.delete(work))
      working.add(work)
    }
  }
  // Neither keeps the process alive.
  const watcher = watch(requestsDir, { persistent: false }, look).on('error', () => undefined)
  const timer = setInterval(look, limits.pollMs).unref()
  look()
  return {
    async stop() {
      isStopped = true
      clearInterval(timer)
      watcher.close()
      await Promise.all(working)
    },
  }
}

async function serve(
  cluster: Cluster,
  { archive, restore }: WalCommands,
  { kind, segment, request }: { kind: string | undefined; segment: string; request: string },
): Promise<void> {
  // A name that no other process uses: the script may give up and ask again.
  const part = `${request}.${randomBytes(6).toString('hex')}`
  try {
    let result = 'done'
    if (kind === 'archive') await archive?.(segment, join(cluster.pgdata, 'pg_wal', segment))
    else if (await writeNew(cluster, part, async file => (await restore?.(segment, file)) ?? false))
      renameSync(part, `${request}.file`)
    else result = 'missing'
    move(`${request}.taken`, `${request}.${result}`)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    try {
      await rm(part, { force: true })
      await writeNew(cluster, part, file => file.writeFile(`cannot ${kind} ${segment}: ${reason}\n`))
      renameSync(part, `${request}.taken`)
    } catch {
      // The disk may be full; the result is the same without its reason.
    }
    move(`${request}.taken`, `${request}.failed`)
  } finally {
    await rm(part, { force: true })
  }
}

/** Creates a file that belongs to the server's user. */
async function writeNew<Result>(
  { user }: Cluster,
  path: string,
  write: (file: FileHandle) => Promise<Result>,
): Promise<Result> {
  // Fails if there is a file or a link.
  const file = await open(path, 'wx', 0o600)
  try {
    if (isRoot) await file.chown(user.uid, user.gid)
    return await write(file)
  } finally {
    await file.close()
  }
}

/** @returns false if the file is gone: another process has taken it, or the script has given up */
function move(from: string, to: string): boolean {
  try {
    renameSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    // The data folder was removed under a running process.
    return []
  }
}
