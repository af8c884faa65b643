import { readFileSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { Option } from 'commander'
import type * as auditLog from '../src/audit-log/audit-log.ts'
import type { Tx } from '../src/database/database.ts'
import { name } from './arguments.ts'
import { terminal } from './terminal.ts'

/** Writes an operator's change to the audit log, in the same transaction. @param partnerId null if it concerns no partner */
export async function recordChange(
  tx: Tx,
  { partnerId, change, now }: { partnerId: string | null; change: auditLog.Change; now: Date },
): Promise<void> {
  const { record } = await import('../src/audit-log/audit-log.ts')
  await record(tx, { partnerId, actor: operator(), change, now })
}

/** The operating system's idea of the user: a record, not proof of identity. */
export function operator(): auditLog.Actor {
  const { SSH_CONNECTION = '' } = terminal().env
  return {
    kind: 'cli',
    name: operatorName(),
    address: SSH_CONNECTION.split(' ', 1)[0]?.slice(0, 100) || null,
    requestId: null,
  }
}

/** The user and the machine, as the audit log names them. */
export function operatorName(): string {
  const { SUDO_USER } = terminal().env
  const user = userName()
  const name = SUDO_USER === undefined || SUDO_USER === user ? user : `${SUDO_USER} as ${user}`
  return `${name}@${hostname()}`.slice(0, 200)
}

/**
 * The login at the operating system, by its number: the login that PAM recorded, which `sudo` and `su` keep, otherwise the user. Unlike
 * SUDO_USER, an unprivileged user cannot choose it; root can.
 */
export function loginOf(): string {
  return `${recordedLogin() ?? process.getuid?.() ?? userName()}@${hostname()}`.slice(0, 200)
}

// The value on Linux if nothing was recorded: in a container or a service.
const noLogin = '4294967295'

function recordedLogin(): string | undefined {
  try {
    const recorded = readFileSync('/proc/self/loginuid', 'utf8').trim()
    return recorded === '' || recorded === noLogin ? undefined : recorded
  } catch {
    return undefined
  }
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A container may run under a uid without an entry in /etc/passwd.
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

/** Names the person who decides, if people share a user of the operating system. A server sees an operator key, not a person. */
export const asOption = () =>
  new Option('--as <person>', 'who decides; by default the user of the operating system')
    .argParser(name({ lengthMax: 100 }))
    .conflicts('url')

/** Who decides: a record, not proof of identity. */
export const personOf = (as: string | undefined) =>
  as === undefined ? operatorName() : `${as} (${operatorName()})`.slice(0, 200)
