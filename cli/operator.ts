import { hostname, userInfo } from 'node:os'
import * as auditLog from '../src/audit-log/audit-log.ts'
import type { Tx } from '../src/database/database.ts'
import { terminal } from './terminal.ts'

/** Writes an operator's change to the audit log, in the same transaction. @param partnerId null if it concerns no partner */
export async function recordChange(
  tx: Tx,
  { partnerId, change, now }: { partnerId: string | null; change: auditLog.Change; now: Date },
): Promise<void> {
  await auditLog.record(tx, { partnerId, actor: operator(), change, now })
}

/** The operating system's idea of the user: a record, not proof of identity. */
function operator(): auditLog.Actor {
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

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A container may run under a uid without an entry in /etc/passwd.
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}
