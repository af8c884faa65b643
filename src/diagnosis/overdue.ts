import { readLastBackup } from '../audit-log/audit-log.ts'
import type { Reader } from '../database/database.ts'
import type { Retention } from '../kernel/retention.ts'
import type { Mode } from '../partners/partners.ts'
import { findOverdue, type RemovedKind } from '../retention/retention.ts'

// Daily work whose absence nothing else shows.

const limits = {
  // A daily backup, and two hours for it to be taken.
  backupAgeMsMax: 26 * 3_600_000,
}

/** @property overdueKinds the kinds of which data is past its retention */
export type Overdue = { lastBackupAt: Date | null; overdueKinds: RemovedKind[] }

export async function readOverdue(db: Reader, asked: { retention: Retention; now: Date }): Promise<Overdue> {
  return { lastBackupAt: await readLastBackup(db), overdueKinds: await findOverdue(db, asked) }
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
