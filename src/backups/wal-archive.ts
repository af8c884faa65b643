import { randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { type FileHandle, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { measured, syncFolder } from '../kernel/files.ts'
import { type BackupTarget, readSealed, writeSealed } from './sealed.ts'

// The archive of a server's WAL: a file for each segment, whose name ends with the SHA-256 of the segment. So a segment that is archived
// again is recognised without its key, and one that differs is refused.

/** Finds the part of the target that belongs to one server. */
export function folderOf({ dir }: Pick<BackupTarget, 'dir'>, systemIdentifier: string): string {
  return path.join(dir, systemIdentifier)
}

/** Identifies a cluster, also after it was restored. @param pgdata its folder */
export async function readSystemIdentifier(pgdata: string): Promise<string> {
  // The first field of the control file.
  return (await readFile(path.join(pgdata, 'global/pg_control'))).readBigUInt64LE(0).toString()
}

/**
 * Archives a segment. Idempotent; may be killed at any point.
 * @param source the path of the segment in the cluster, which does not change
 * @throws Error if another segment of this name is in the archive, or it cannot be written
 */
export async function archiveSegment(
  target: BackupTarget,
  { segment, source }: { segment: string; source: string },
): Promise<void> {
  const pgdata = path.dirname(path.dirname(source))
  const folder = path.join(folderOf(target, await readSystemIdentifier(pgdata)), 'wal', groupOf(segment))
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const { sha256 } = await measured(createReadStream(source))
  const found = (await readdir(folder)).find(name => name.startsWith(`${segment}-`))
  const name = `${segment}-${sha256}.gz.age`
  if (found !== undefined && found !== name)
    throw new Error(`another server has archived ${segment} in ${folder}; give each installation its own folder`)
  if (found !== undefined) return
  const part = path.join(folder, `.${segment}.${randomBytes(6).toString('hex')}.part`)
  try {
    await writeSealed(part, { bytes: createReadStream(source), recipients: target.recipients })
    await rename(part, path.join(folder, name))
    await syncFolder(folder)
    await syncFolder(path.dirname(folder))
  } catch (error) {
    await rm(part, { force: true })
    throw error
  }
}

/** The folder of a segment: 256 segments, 4 GiB of WAL. The histories of timelines have their own. */
function groupOf(segment: string): string {
  return /^[0-9A-F]{24}/.test(segment) ? segment.slice(0, 16) : 'timelines'
}

/** A file of the archive. */
export type Archived = { segment: string; sha256: string; file: string }

/** Lists an archive, in the order of the segments. */
export async function listArchive(folder: string): Promise<Archived[]> {
  const root = path.join(folder, 'wal')
  const names = await readdir(root, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return names
    .flatMap(name => {
      const [, segment, sha256] = /([^/]+)-([0-9a-f]{64})\.gz\.age$/.exec(name) ?? []
      return segment === undefined || sha256 === undefined ? [] : [{ segment, sha256, file: path.join(root, name) }]
    })
    .toSorted((a, b) => (a.segment < b.segment ? -1 : 1))
}

/** Only segments, not the histories of timelines and backups. */
export function segmentsOf(archive: readonly Archived[]): string[] {
  return archive.map(({ segment }) => segment).filter(segment => /^[0-9A-F]{24}$/.test(segment))
}

/**
 * Finds the first segment that is missing between two others.
 * @param segments in the order of their places in the WAL, also of several timelines, which may share places
 * @returns undefined if there is no gap
 */
export function findGap(segments: readonly string[]): { missing: string; next: string } | undefined {
  for (const [index, next] of segments.entries()) {
    const before = segments[index - 1]
    if (before === undefined || before.slice(8) === next.slice(8)) continue
    const missing = segmentAfter(before)
    if (missing.slice(8) !== next.slice(8)) return { missing, next }
  }
  return undefined
}

/** With segments of 16 MiB, 256 of them share the middle part of the name. */
function segmentAfter(segment: string): string {
  const place = BigInt(`0x${segment.slice(8, 16)}`) * 256n + BigInt(`0x${segment.slice(16)}`) + 1n
  const hex = (value: bigint) => value.toString(16).toUpperCase().padStart(8, '0')
  return segment.slice(0, 8) + hex(place / 256n) + hex(place % 256n)
}

/**
 * Restores a segment.
 * @param options.to a new file
 * @returns false if the archive does not have it
 * @throws Error if it is damaged, or no identity opens it
 */
export async function restoreSegment(
  archive: ReadonlyMap<string, Archived>,
  { segment, to, identities }: { segment: string; to: FileHandle; identities: readonly string[] },
): Promise<boolean> {
  const archived = archive.get(segment)
  if (archived === undefined) return false
  const { sha256 } = await measured(readSealed(archived.file, identities), { use: chunk => to.writeFile(chunk) })
  if (sha256 !== archived.sha256) throw new Error(`${archived.file} is damaged`)
  return true
}
