import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { EmbeddedPostgresProblem, useOwnServer } from './problem.ts'

/** The Unix user that PostgreSQL runs as and that owns its files. */
export type ServerUser = { name: string; uid: number; gid: number }

export const isRoot = process.getuid?.() === 0

/**
 * Chooses the user that runs the server. PostgreSQL refuses to run as root, so root picks an unprivileged user: the owner of
 * the cluster (`sudo npm start` after `npm start` joins instead of failing), otherwise the first of `unprivilegedNames`.
 * @param pgdata need not exist yet
 */
export function serverUser(pgdata: string): ServerUser {
  const owner = statSync(pgdata, { throwIfNoEntry: false })
  if (!isRoot) {
    const self = thisUser()
    if (owner === undefined || owner.uid === self.uid) return self
    throw new EmbeddedPostgresProblem(
      `The database in ${pgdata} belongs to ${nameOf(owner.uid)}, but this process runs as ${self.name}: ` +
        `run it as that user or as root, choose another data folder, or ${useOwnServer}`,
    )
  }
  if (owner === undefined) return unprivilegedUser()
  if (owner.uid === 0) {
    throw new EmbeddedPostgresProblem(
      `The database in ${pgdata} belongs to root, and PostgreSQL refuses to run as root: ` +
        `give it to another user, as in "chown -R ${unprivilegedUser().name} ${pgdata}"`,
    )
  }
  return { name: nameOf(owner.uid), uid: owner.uid, gid: owner.gid }
}

/** Tries to enter the folder, since only the kernel knows whether a user may. */
export async function canEnter(folder: string, user: ServerUser): Promise<boolean> {
  const { ok } = await run('/bin/sh', ['-c', 'cd "$1"', 'sh', folder], user)
  return ok
}

/**
 * Runs a command to completion as the server's user.
 * @returns whether the command succeeded, and its output
 */
export async function run(
  command: string,
  args: string[],
  user: ServerUser,
  { input = '' }: { input?: string } = {},
): Promise<{ ok: boolean; said: string }> {
  const { promise, resolve } = Promise.withResolvers<{ ok: boolean; said: string }>()
  const child = spawnAs(user, command, args)
  let said = ''
  const collect = (text: string) => {
    said += text
  }
  child.stdout.setEncoding('utf8').on('data', collect)
  child.stderr.setEncoding('utf8').on('data', collect)
  child.on('error', error => resolve({ ok: false, said: error.message }))
  child.on('close', code => resolve({ ok: code === 0, said: said.trim() }))
  // If a command ends without reading its input, its exit code decides.
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  return promise
}

function spawnAs(user: ServerUser, command: string, args: string[]): ChildProcessWithoutNullStreams {
  try {
    return spawn(command, args, asUser(user))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EPERM' && code !== 'EINVAL') throw error
    throw new EmbeddedPostgresProblem(
      `PostgreSQL refuses to run as root, and the system does not let root become ${user.name} (${code}): ` +
        `run this as an ordinary user, or ${useOwnServer}`,
    )
  }
}

/**
 * Options for spawning as the server's user. The environment is clean, because the operator's PG* and LD_* variables
 * are for other servers. Messages are in English, so that they can be parsed.
 */
export function asUser({ uid, gid }: ServerUser) {
  return {
    ...(isRoot ? { uid, gid } : {}),
    cwd: '/',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
  }
}

export function thisUser(): ServerUser {
  const { uid, gid } = { uid: process.getuid?.() ?? -1, gid: process.getgid?.() ?? -1 }
  return { name: nameOf(uid), uid, gid }
}

// The first exists if the system has its own PostgreSQL.
const unprivilegedNames = ['postgres', 'nobody']

function unprivilegedUser(): ServerUser {
  for (const wanted of unprivilegedNames) {
    for (const [name, , uid, gid] of accounts()) {
      if (name === wanted) return { name, uid: Number(uid), gid: Number(gid) }
    }
  }
  throw new EmbeddedPostgresProblem(
    `PostgreSQL refuses to run as root, and /etc/passwd has none of the users ${unprivilegedNames.join(', ')}: ` +
      `run this as an ordinary user, or ${useOwnServer}`,
  )
}

function nameOf(uid: number): string {
  if (uid === process.getuid?.()) {
    try {
      return userInfo().username
    } catch {
      // A container may run as a user id without an account.
    }
  }
  return accounts().find(account => account[2] === String(uid))?.[0] ?? `user ${uid}`
}

function accounts(): string[][] {
  return readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map(line => line.split(':'))
}
