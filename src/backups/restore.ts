import { findPackage, type WalCommands } from '@midmonth/embedded-postgres'
import { type Reader, sql } from '../database/database.ts'
import { type BaseBackup, contentOf, listBaseBackups, requireIntact } from './base-backups.ts'
import { type BackupTarget, readSealed } from './sealed.ts'
import { untar } from './tar.ts'
import { chooseTimeline, descendsFrom, isInHistory } from './timelines.ts'
import { findGap, folderOf, listArchive, restoreSegment, segmentsOf } from './wal-archive.ts'

/** What to restore. @property at an instant to stop at; undefined for the end of the archive */
export type Wanted = Pick<BackupTarget, 'dir'> & {
  identities: readonly string[]
  at: Date | undefined
  /** The id of a base backup; by default the last one before `at`. */
  backup: string | undefined
  /** The timeline of the WAL to follow; by default the one that was archived last. */
  timeline: number | undefined
}

/** A base backup, and how to start a server that recovers it. */
export type RestorePlan = {
  backup: BaseBackup
  timeline: number
  fill(folder: string): Promise<void>
  wal: WalCommands
  settings: Record<string, string>
}

/**
 * Chooses the backup, and checks what can be checked before anything is written.
 * @throws Error with a sentence for the operator
 */
export async function planRestore({ dir, identities, at, backup: id, timeline: wanted }: Wanted): Promise<RestorePlan> {
  const everywhere = await listBaseBackups({ dir })
  const { systemIdentifier } = chooseBackup(everywhere, { dir, at, id })
  const backups = everywhere.filter(each => each.systemIdentifier === systemIdentifier)
  const all = await listArchive(folderOf({ dir }, systemIdentifier))
  const timeline = await chooseTimeline(all, { backups, wanted, identities })
  const ancestors = backups.filter(each => descendsFrom(timeline, each))
  const backup = chooseBackup(ancestors, { dir: `${dir} for timeline ${timeline.number}`, at, id })
  const { major } = findPackage()
  if (backup.postgresMajor !== major)
    throw new Error(
      `The backup ${backup.id} is of PostgreSQL ${backup.postgresMajor}, but this is version ${major}: restore it with the version of Midmonth that took it`,
    )
  await requireIntact(backup)
  const needed = segmentsOf(all)
    .filter(segment => segment.slice(8) >= backup.firstSegment.slice(8) && isInHistory(timeline, segment))
    .toSorted((a, b) => (a.slice(8) < b.slice(8) ? -1 : 1))
  for (const segment of [backup.firstSegment, backup.lastSegment])
    if (!needed.includes(segment)) throw new Error(missing(segment, backup))
  const gap = findGap(needed)
  if (gap !== undefined && at === undefined)
    throw new Error(
      `${missing(gap.missing, backup)}, but has ${gap.next}: what was committed after the gap cannot be restored. Find the segment, or restore to before it with --at`,
    )
  const archive = new Map(all.map(each => [each.segment, each]))
  return {
    ...{ backup, timeline: timeline.number },
    fill: folder => untar(readSealed(contentOf(backup), identities), folder),
    wal: { restore: async (segment, to) => await restoreSegment(archive, { segment, to, identities }) },
    settings: {
      ...(at === undefined ? {} : { recovery_target_time: at.toISOString().replace('Z', '+00') }),
      recovery_target_timeline: String(timeline.number),
      recovery_target_action: 'promote',
    },
  }
}

/** @param all oldest first */
function chooseBackup(
  all: readonly BaseBackup[],
  { dir, at, id }: { dir: string; at: Date | undefined; id: string | undefined },
): BaseBackup {
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
