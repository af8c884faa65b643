import { readLastBackup, readOldestAddress } from '../audit-log/audit-log.ts'
import type { Reader } from '../database/database.ts'
import type { Mode } from '../partners/partners.ts'

// Daily work whose absence nothing else shows.

const limits = {
  // A daily backup, and two hours for it to be taken.
  backupAgeMsMax: 26 * 3_600_000,
  // The worker removes addresses within a minute. A day more means that no worker runs.
  addressGraceMs: 86_400_000,
}

export type Overdue = { lastBackupAt: Date | null; oldestAuditAddressAt: Date | null }

export async function readOverdue(db: Reader): Promise<Overdue> {
  return { lastBackupAt: await readLastBackup(db), oldestAuditAddressAt: await readOldestAddress(db) }
}

/** The warning about the backups of a live installation; undefined if the last backup is recent. */
export function backupOverdue({
  mode,
  lastBackupAt,
  now,
}: { mode: Mode; now: Date } & Pick<Overdue, 'lastBackupAt'>): string | undefined {
  if (mode !== 'live') return undefined
  if (lastBackupAt === null) return 'No backup has been recorded'
  if (now.getTime() - lastBackupAt.getTime() <= limits.backupAgeMsMax) return undefined
  return `The last recorded backup was taken at ${lastBackupAt.toISOString()}, more than a day ago`
}

/** The warning about addresses that the audit log should have dropped; undefined if there are none. */
export function addressesOverdue({
  oldestAuditAddressAt,
  auditAddressDays,
  now,
}: { auditAddressDays: number; now: Date } & Pick<Overdue, 'oldestAuditAddressAt'>): string | undefined {
  const keptSince = now.getTime() - auditAddressDays * 86_400_000 - limits.addressGraceMs
  if (oldestAuditAddressAt === null || oldestAuditAddressAt.getTime() >= keptSince) return undefined
  return `The audit log still has addresses of ${oldestAuditAddressAt.toISOString()}, but MIDMONTH_AUDIT_ADDRESS_DAYS is ${auditAddressDays}; a worker removes them`
}
