import { readdir, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { syncFolder } from '../kernel/files.ts'
import { type BaseBackup, listBaseBackups, listServers } from './base-backups.ts'
import type { BackupTarget } from './sealed.ts'
import { folderOf, listArchive } from './wal-archive.ts'

/** What was deleted, and since when a restore is possible. */
export type Expired = { backups: string[]; segments: number; oldest: string | null }

const limits = {
  // No segment takes an hour, so the rest of a killed process is abandoned.
  abandonedMs: 3_600_000,
  // The clock of a file server may differ from ours.
  clockMs: 86_400_000,
  // Backups expire daily, so a backup that has less than a day left would outlive the limit.
  intervalMs: 86_400_000,
}

/**
 * Deletes the backups that would be older than `backupDays` before this runs again, and the WAL that no remaining one needs. Keeps the
 * last complete backup of the server in any case, but not of others that have used the folder: a new installation or an upgrade of
 * PostgreSQL makes another server. Safe to kill at any point and to run again.
 */
export async function expireBackups(
  target: Pick<BackupTarget, 'dir'>,
  { systemIdentifier, backupDays, now }: { systemIdentifier: string; backupDays: number; now: Date },
): Promise<Expired> {
  const before = new Date(now.getTime() - backupDays * 86_400_000 + limits.intervalMs)
  const all = await listBaseBackups(target)
  const expired: Expired = { backups: [], segments: 0, oldest: null }
  for (const server of await listServers(target)) {
    const folder = folderOf(target, server)
    const ofServer = all.filter(each => each.systemIdentifier === server)
    const last = server === systemIdentifier ? ofServer.at(-1) : undefined
    const gone = ofServer.filter(each => each !== last && new Date(each.startedAt) < before)
    for (const backup of gone) await rm(backup.folder, { recursive: true, force: true })
    if (gone.length > 0) await syncFolder(path.join(folder, 'base'))
    const kept = ofServer.filter(each => !gone.includes(each))
    const since = kept[0] === undefined ? before : new Date(kept[0].startedAt)
    const unneeded = await listUnneeded(folder, { kept, since })
    for (const file of unneeded) await rm(file, { force: true })
    await removeAbandoned(path.join(folder, 'wal'), now)
    expired.backups.push(...gone.map(({ id }) => id))
    expired.segments += unneeded.length
    if (server === systemIdentifier) expired.oldest = kept[0]?.endedAt ?? null
  }
  return expired
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
