import { findPackage, type WalCommands } from '@midmonth/embedded-postgres'
import { type Reader, sql } from '../database/database.ts'
import { type BaseBackup, contentOf, listBaseBackups, requireIntact } from './base-backups.ts'
import { type BackupTarget, readSealed } from './sealed.ts'
import { untar } from './tar.ts'
import { findGap, folderOf, listArchive, restoreSegment, segmentsOf } from './wal-archive.ts'

/** What to restore. @property at an instant to stop at; undefined for the end of the archive */
export type Wanted = Pick<BackupTarget, 'dir'> & {
  identities: readonly string[]
  at: Date | undefined
  /** The id of a base backup; by default the last one before `at`. */
  backup: string | undefined
}

/** A base backup, and how to start a server that recovers it. */
export type RestorePlan = {
  backup: BaseBackup
  fill(folder: string): Promise<void>
  wal: WalCommands
  settings: Record<string, string>
}

/**
 * Chooses the backup, and checks what can be checked before anything is written.
 * @throws Error with a sentence for the operator
 */
export async function planRestore({ dir, identities, at, backup: id }: Wanted): Promise<RestorePlan> {
  const backup = await chooseBackup({ dir, at, id })
  const { major } = findPackage()
  if (backup.postgresMajor !== major)
    throw new Error(
      `The backup ${backup.id} is of PostgreSQL ${backup.postgresMajor}, but this is version ${major}: restore it with the version of Midmonth that took it`,
    )
  await requireIntact(backup)
  const all = await listArchive(folderOf({ dir }, backup.systemIdentifier))
  const needed = segmentsOf(all).filter(segment => segment.slice(8) >= backup.firstSegment.slice(8))
  for (const segment of [backup.firstSegment, backup.lastSegment])
    if (!needed.includes(segment)) throw new Error(missing(segment, backup))
  const gap = findGap(needed)
  if (gap !== undefined && at === undefined)
    throw new Error(
      `${missing(gap.missing, backup)}, but has ${gap.next}: what was committed after the gap cannot be restored. Find the segment, or restore to before it with --at`,
    )
  const archive = new Map(all.map(each => [each.segment, each]))
  return {
    backup,
    fill: async folder => {
      await untar(readSealed(contentOf(backup), identities), folder)
    },
    wal: { restore: async (segment, to) => await restoreSegment(archive, { segment, to, identities }) },
    settings: {
      ...(at === undefined ? {} : { recovery_target_time: at.toISOString().replace('Z', '+00') }),
      recovery_target_action: 'promote',
    },
  }
}

async function chooseBackup({
  dir,
  at,
  id,
}: {
  dir: string
  at: Date | undefined
  id: string | undefined
}): Promise<BaseBackup> {
  const all = await listBaseBackups({ dir })
  if (all.length === 0) throw new Error(`There is no complete backup in ${dir}`)
  if (id !== undefined) {
    const found = all.find(each => each.id === id)
    if (found === undefined) throw new Error(`There is no backup ${id}; see midmonth backup list`)
    return found
  }
  const found = all.findLast(({ endedAt }) => at === undefined || new Date(endedAt) <= at)
  if (found === undefined)
    throw new Error(`No backup ended before ${at?.toISOString()}; the first ended at ${all[0]?.endedAt}`)
  return found
}

function missing(segment: string, { id }: BaseBackup): string {
  return `The archive lacks the WAL segment ${segment}, which the backup ${id} needs`
}

/** When the last transaction that was recovered was committed; null if the WAL had none. Known until the server is restarted. */
export async function readRecoveredUntil(db: Reader): Promise<Date | null> {
  const { rows } = await sql<{ at: Date | null }>`select pg_last_xact_replay_timestamp() as at`.execute(db)
  return rows[0]?.at ?? null
}
