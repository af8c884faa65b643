import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { access, link, lstat, mkdir, opendir, readdir, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { measured, syncFolder } from '../../kernel/files.ts'
import type { Day } from '../../kernel/time.ts'
import { encrypted } from '../../sealing/age.ts'
import {
  type DeliveredFile,
  type Delivery,
  DeliveryProblem,
  type Inbox,
  type InboxFile,
  isErrno,
  isPartial,
  isSafe,
  limits,
  refuseUnsafe,
} from './delivery.ts'
import { exists, readRegular, renameDurably, writeDurably } from './files.ts'
import type { SealFile } from './sealed-file.ts'

// Longer than the pause between two writes of a program that copies a file without a temporary name.
const quietMsMin = 60_000
// More than any file of a bank that is imported.
const sealedBytesMax = 2 * 1024 ** 3
// The most files of one name in one folder of the archive. Banks repeat names, but not within a day.
const copiesMax = 1_000

export type FolderOptions = {
  folder: string
  /** Public keys of age, 'age1…', for which archived and rejected files are encrypted instead of being sealed. Default none. */
  recipients?: readonly string[] | undefined
  /** How long a file in the inbox must stay unchanged before it counts as complete; 0 disables the wait. Default 60,000. */
  quietMs?: number | undefined
}

/** The record of each file in `sent/`, with which a second attempt finishes the first instead of sending the file again. */
type Sent = DeliveredFile & { part: string }

/**
 * Delivers through a folder on this machine, which the bank's software empties and fills. In it:
 *
 * - `outbox/`: files for the bank. They may be taken at any time.
 * - `inbox/`: files from the bank.
 * - `archive/YYYY-MM-DD/` and `rejected/`: files that were read, and files that could not be read.
 * - `sent/`: one small record for each file that was ever delivered. Never delete these records: without its record a file is sent again.
 */
export class FolderDelivery implements Delivery {
  readonly outbox: string
  readonly inbox: string
  private readonly folder: string
  private readonly recipients: readonly string[]
  private readonly quietMs: number

  private constructor({ folder, recipients = [], quietMs = quietMsMin }: FolderOptions) {
    this.folder = folder
    this.outbox = path.join(folder, 'outbox')
    this.inbox = path.join(folder, 'inbox')
    this.recipients = recipients
    this.quietMs = quietMs
  }

  /** Creates the folders that are missing. */
  static async open(options: FolderOptions): Promise<FolderDelivery> {
    for (const name of ['outbox', 'inbox', 'archive', 'rejected', 'sent'])
      await mkdir(path.join(options.folder, name), { recursive: true, mode: 0o700 })
    return new FolderDelivery(options)
  }

  // Written under a temporary name, recorded in `sent/`, renamed. The record names the temporary file, whose absence shows that the file
  // was released, even if the bank has taken it from the outbox.
  async put(name: string, bytes: AsyncIterable<string | Uint8Array>): Promise<DeliveredFile> {
    refuseUnsafe(name)
    const earlier = await this.sentRecord(name)
    const part = `.${name}.${randomBytes(6).toString('hex')}.part`
    const file = earlier === undefined ? await writeDurably(path.join(this.outbox, part), bytes) : await measured(bytes)
    const sent = earlier ?? (await this.record(name, { ...file, part }))
    if (earlier === undefined && sent.part !== part) await rm(path.join(this.outbox, part), { force: true })
    if (sent.sha256 !== file.sha256)
      throw new DeliveryProblem(`Another file named ${name} was delivered before, with other bytes`)
    await this.release(name, sent.part)
    return file
  }

  private async release(name: string, part: string): Promise<void> {
    const [from, to] = [path.join(this.outbox, part), path.join(this.outbox, name)]
    if (!(await exists(from))) return
    // Checked again, because a concurrent call may have released the file in between.
    if ((await exists(to)) && (await exists(from)))
      throw new DeliveryProblem(`${to} exists and is not ours; move it away`)
    try {
      await renameDurably(from, to)
    } catch (error) {
      // Released by a concurrent call.
      if (!isErrno(error, 'ENOENT')) throw error
    }
    await this.removeLeftovers(name)
  }

  /** Removes the leftovers of attempts that were killed while they wrote. Best effort: a leftover is never mistaken for a complete file. */
  private async removeLeftovers(name: string): Promise<void> {
    const leftovers = (await readdir(this.outbox)).filter(
      each => each.startsWith(`.${name}.`) && each.endsWith('.part'),
    )
    await Promise.all(leftovers.map(each => rm(path.join(this.outbox, each), { force: true })))
  }

  private async sentRecord(name: string): Promise<Sent | undefined> {
    try {
      return JSON.parse(await readFile(this.recordOf(name), 'utf8')) as Sent
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return undefined
      throw error
    }
  }

  /** Records that a file is complete. If a concurrent call was first, its record holds. */
  private async record(name: string, sent: Sent): Promise<Sent> {
    const written = path.join(this.folder, 'sent', sent.part)
    await writeDurably(written, oneChunk(JSON.stringify(sent)))
    try {
      // Unlike a rename, a link never replaces a record.
      await link(written, this.recordOf(name))
      await syncFolder(path.dirname(written))
      return sent
    } catch (error) {
      if (!isErrno(error, 'EEXIST')) throw error
      return (await this.sentRecord(name)) ?? sent
    } finally {
      await rm(written)
    }
  }

  private recordOf(name: string): string {
    return path.join(this.folder, 'sent', `${name}.json`)
  }

  async list(now: Date): Promise<Inbox> {
    const files: InboxFile[] = []
    const skipped: Inbox['skipped'] = []
    let count = 0
    for await (const { name } of await opendir(this.inbox)) {
      if (++count > limits.entriesMax) break
      if (isPartial(name)) continue
      const found = await this.inspect(name)
      if (found === undefined) continue
      if ('reason' in found) skipped.push({ name, reason: found.reason })
      // Changes to a file's name and rights count too: a copy may carry an old modification time.
      else if (this.quietMs === 0 || now.getTime() - Math.max(found.mtimeMs, found.ctimeMs) >= this.quietMs) {
        files.push({ name, size: found.size, modifiedAt: found.mtime })
      }
    }
    files.sort((a, b) => a.modifiedAt.getTime() - b.modifiedAt.getTime() || (a.name < b.name ? -1 : 1))
    return { files, skipped }
  }

  /** @returns undefined if the entry is gone */
  private async inspect(name: string): Promise<Stats | { reason: string } | undefined> {
    if (!isSafe(name)) return { reason: 'its name is too long or has characters that are not allowed' }
    const file = path.join(this.inbox, name)
    try {
      const stats = await lstat(file)
      if (stats.isSymbolicLink()) return { reason: 'it is a symbolic link' }
      if (stats.isDirectory()) return { reason: 'it is a directory' }
      if (!stats.isFile()) return { reason: 'it is not a regular file' }
      await access(file, constants.R_OK)
      return stats
    } catch (error) {
      if (isErrno(error, 'ENOENT')) return undefined
      if (isErrno(error, 'EACCES', 'EPERM')) return { reason: 'it cannot be read; change its owner or its rights' }
      throw error
    }
  }

  get(name: string): AsyncIterable<Uint8Array> {
    refuseUnsafe(name)
    return readRegular(path.join(this.inbox, name))
  }

  async archive(name: string, day: Day, seal: SealFile): Promise<void> {
    const folder = path.join(this.folder, 'archive', day)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await this.move(name, await this.freeName(folder, name), seal)
  }

  async reject(name: string, report: string, seal: SealFile): Promise<void> {
    const target = await this.freeName(path.join(this.folder, 'rejected'), name)
    if (!(await exists(path.join(this.inbox, name)))) return
    const part = path.join(path.dirname(target), `.${randomBytes(6).toString('hex')}.part`)
    await writeDurably(part, oneChunk(report))
    await renameDurably(part, `${target}.report.txt`)
    await this.move(name, target, seal)
  }

  /** @returns a free path in a folder for the forms of the file and its report */
  private async freeName(folder: string, name: string): Promise<string> {
    refuseUnsafe(name)
    for (let copy = 1; copy <= copiesMax; copy++) {
      const candidate = path.join(folder, copy === 1 ? name : `${name}.${copy}`)
      const taken = [candidate, `${candidate}.age`, `${candidate}.sealed`, `${candidate}.report.txt`].map(exists)
      if (!(await Promise.all(taken)).includes(true)) return candidate
    }
    throw new DeliveryProblem(`${folder} has more than ${copiesMax} files named ${name}; move some away`)
  }

  /**
   * Rewrites a file of the inbox, and deletes the original once the new file is on the disk. A file that is too large to be a bank's is
   * moved as it is: a second copy could fill the disk.
   */
  private async move(name: string, target: string, seal: SealFile): Promise<void> {
    const source = path.join(this.inbox, name)
    if (!(await exists(source))) return
    if (this.recipients.length === 0 && (await lstat(source)).size > sealedBytesMax)
      return await renameDurably(source, target)
    const [suffix, bytes] =
      this.recipients.length > 0
        ? ['age', encrypted(this.get(name), this.recipients)]
        : ['sealed', seal(this.get(name))]
    const part = path.join(path.dirname(target), `.${randomBytes(6).toString('hex')}.part`)
    await writeDurably(part, bytes)
    await renameDurably(part, `${target}.${suffix}`)
    await rm(source, { force: true })
    await syncFolder(this.inbox)
  }
}

async function* oneChunk(text: string): AsyncGenerator<string> {
  yield text
}
