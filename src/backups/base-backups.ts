import { randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { type Static, Type } from 'typebox'
import { measured, syncFolder } from '../kernel/files.ts'
import { ajv } from '../kernel/json-schema.ts'
import { type Connection, copyCluster } from './copy-cluster.ts'
import { type BackupTarget, writeSealed } from './sealed.ts'
import { folderOf, readSystemIdentifier } from './wal-archive.ts'

// A base backup is a folder with a description and the files of the cluster. It is made under another name, and renamed once it is
// complete and synced. A backup that was killed never counts as one.

const format = 'midmonth backup 1'
const descriptionName = 'backup.json'
const contentName = 'base.tar.gz.age'
const unfinished = '.unfinished-'

/** What a restore needs to know before it has the private key. Nothing in it is personal. */
const Description = Type.Object({
  format: Type.Literal(format),
  id: Type.String(),
  startedAt: Type.String(),
  endedAt: Type.String(),
  postgresMajor: Type.Integer(),
  systemIdentifier: Type.String(),
  /** The first and the last segment of the WAL without which the backup is useless. */
  firstSegment: Type.String(),
  lastSegment: Type.String(),
  bytes: Type.Integer(),
  sha256: Type.String(),
  recipients: Type.Array(Type.String()),
})

export type BaseBackup = Static<typeof Description> & { folder: string }

type BackupSource = { connection: Connection; pgdata: string; postgresMajor: number; now: () => Date }

/**
 * Takes a base backup while the server runs, and waits until the WAL that it needs is archived.
 * @throws Error with a sentence for the operator; then nothing of it counts
 */
export async function takeBaseBackup(
  target: BackupTarget,
  { connection, pgdata, postgresMajor, now }: BackupSource,
): Promise<BaseBackup> {
  const systemIdentifier = await readSystemIdentifier(pgdata)
  const parent = path.join(folderOf(target, systemIdentifier), 'base')
  await mkdir(parent, { recursive: true, mode: 0o700 })
  const startedAt = now()
  const id = `${startedAt.toISOString().replace(/[-:]|\.\d+/g, '')}-${randomBytes(3).toString('hex')}`
  const part = path.join(parent, `${unfinished}${id}`)
  try {
    return await copyCluster({ connection, pgdata, label: `midmonth ${id}` }, async copy => {
      // This connection is the only one that backs up, so the folders of all others are leftovers.
      for (const name of await readdir(parent))
        if (name.startsWith(unfinished)) await rm(path.join(parent, name), { recursive: true, force: true })
      await mkdir(part, { mode: 0o700 })
      const written = await writeSealed(path.join(part, contentName), {
        bytes: copy.content(),
        recipients: target.recipients,
      })
      const { firstSegment, lastSegment } = copy.segments()
      const description: Static<typeof Description> = {
        format,
        ...{ id, startedAt: startedAt.toISOString(), endedAt: now().toISOString() },
        ...{ postgresMajor, systemIdentifier, firstSegment, lastSegment },
        ...{ ...written, recipients: [...target.recipients] },
      }
      const file = await open(path.join(part, descriptionName), 'wx', 0o600)
      await file.writeFile(`${JSON.stringify(description, null, 2)}\n`)
      await file.sync().finally(() => file.close())
      await syncFolder(part)
      const folder = path.join(parent, id)
      await rename(part, folder)
      await syncFolder(parent)
      return { ...description, folder }
    })
  } catch (error) {
    await rm(part, { recursive: true, force: true })
    throw error
  }
}

/** Lists the identifiers of the servers that have used a folder. */
export async function listServers({ dir }: Pick<BackupTarget, 'dir'>): Promise<string[]> {
  return (await namesIn(dir)).filter(name => /^\d+$/.test(name))
}

/** Lists the complete base backups of all servers in a folder, oldest first. */
export async function listBaseBackups({ dir }: Pick<BackupTarget, 'dir'>): Promise<BaseBackup[]> {
  const found: BaseBackup[] = []
  for (const server of await listServers({ dir })) {
    const parent = path.join(dir, server, 'base')
    for (const name of await namesIn(parent)) {
      if (name.startsWith('.')) continue
      const folder = path.join(parent, name)
      const description = JSON.parse(await readFile(path.join(folder, descriptionName), 'utf8'))
      if (!ajv.validate(Description, description))
        throw new Error(`${folder} is not a backup of this version of Midmonth`)
      found.push({ ...(description as Static<typeof Description>), folder })
    }
  }
  return found.toSorted((a, b) => (a.endedAt < b.endedAt ? -1 : 1))
}

export function contentOf({ folder }: BaseBackup): string {
  return path.join(folder, contentName)
}

/** @throws Error if the file of a backup is not as it was written */
export async function requireIntact(backup: BaseBackup): Promise<void> {
  const file = contentOf(backup)
  const { size, sha256 } = await measured(createReadStream(file))
  if (size < backup.bytes) throw new Error(`${file} was cut off; restore an earlier backup with --backup`)
  if (sha256 !== backup.sha256) throw new Error(`${file} was changed; restore an earlier backup with --backup`)
}

async function namesIn(folder: string): Promise<string[]> {
  return await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return []
    throw error
  })
}
