import { readdir, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { type BaseBackup, listBaseBackups } from './base-backups.ts'
import { type BackupTarget, syncFolder } from './sealed.ts'
import { folderOf, listArchive } from './wal-archive.ts'

/** What was deleted, and since when a restore is possible. `kept`: the last backup, although it is older than it may be. */
export type Expired = { backups: string[]; segments: number; oldest: string | null; kept: string | null }

const limits = {
  // No segment takes an hour, so the rest of a killed process is abandoned.
  abandonedMs: 3_600_000,
  // The clock of a file server may differ from ours.
  clockMs: 86_400_000,
}

/**
 * Deletes the backups of a server that began more than `backupDays` ago, and the WAL that no remaining one needs. Keeps the last complete
 * backup in any case. Safe to kill at any point and to run again.
 */
export async function expireBackups(
  target: Pick<BackupTarget, 'dir'>,
  { systemIdentifier, backupDays, now }: { systemIdentifier: string; backupDays: number; now: Date },
): Promise<Expired> {
  const folder = folderOf(target, systemIdentifier)
  const all = (await listBaseBackups(target)).filter(each => each.systemIdentifier === systemIdentifier)
  const last = all.at(-1)
  const isOld = ({ startedAt }: BaseBackup) => now.getTime() - new Date(startedAt).getTime() > backupDays * 86_400_000
  const gone = all.filter(each => isOld(each) && each !== last)
  for (const backup of gone) await rm(backup.folder, { recursive: true })
  if (gone.length > 0) await syncFolder(path.join(folder, 'base'))
  const kept = all.filter(each => !gone.includes(each))
  const [oldest] = kept
  const unneeded = oldest === undefined ? [] : await listUnneeded(folder, { kept, since: new Date(oldest.startedAt) })
  for (const file of unneeded) await rm(file, { force: true })
  await removeAbandoned(path.join(folder, 'wal'), now)
  return {
    backups: gone.map(({ id }) => id),
    segments: unneeded.length,
    oldest: oldest?.endedAt ?? null,
    kept: last !== undefined && isOld(last) ? last.id : null,
  }
}

/** The histories of timelines are small, and stay. */
async function listUnneeded(
  folder: string,
  { kept, since }: { kept: readonly BaseBackup[]; since: Date },
): Promise<string[]> {
  const files: string[] = []
  // Of all, because a later backup may begin earlier in the WAL: a restore goes back.
  const [first = ''] = kept.map(({ firstSegment }) => firstSegment.slice(8)).toSorted()
  for (const { segment, file } of await listArchive(folder)) {
    if (!/^[0-9A-F]{24}/.test(segment)) continue
    const isBefore = segment.slice(8, 24) < first
    // A timeline that a restore has left may have got further.
    const isOlder = async () => (await stat(file)).mtimeMs < since.getTime() - limits.clockMs
    if (isBefore || (await isOlder())) files.push(file)
  }
  return files
}

async function removeAbandoned(folder: string, now: Date): Promise<void> {
  const names = await readdir(folder, { recursive: true }).catch(() => [])
  for (const name of names.filter(each => each.endsWith('.part'))) {
    const file = path.join(folder, name)
    const found = await stat(file).catch(() => undefined)
    if (found !== undefined && now.getTime() - found.mtimeMs > limits.abandonedMs) await rm(file, { force: true })
  }
}
