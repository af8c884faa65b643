import { createHash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import ssh2, { type Client, type FileEntryWithStats, type SFTPWrapper, type Stats } from 'ssh2'
import type { Static } from 'typebox'
import { syncFolder } from '../../kernel/files.ts'
import type { Day } from '../../kernel/time.ts'
import { readSecret } from '../../secret-file.ts'
import {
  type DeliveredFile,
  type Delivery,
  DeliveryProblem,
  type Inbox,
  isErrno,
  isPartial,
  isSafe,
  limits,
  type SftpServer,
} from './delivery.ts'
import { exists, renameDurably, writeDurably } from './files.ts'
import { FolderDelivery } from './folder.ts'
import type { SealFile } from './sealed-file.ts'

const sftpLimits = {
  // Until the server has authenticated us.
  connectMsMax: 20_000,
  // The time limit of one connection: enough for a file of 100 MB over a slow line.
  sessionMsMax: 10 * 60_000,
  // A dead line is noticed after three of these.
  keepaliveMs: 10_000,
  // The largest file that is fetched. A statement of a million entries is 1 GB.
  fileBytesMax: 2 * 1024 ** 3,
  // Longer than a bank's pause between two writes of a file, by the server's clock.
  quietMsMin: 60_000,
}

export type SftpOptions = Static<typeof SftpServer> & {
  /** The folder on this machine with files on their way, the archive and rejected files. See `FolderDelivery`. */
  folder: string
  recipients?: readonly string[] | undefined
  /** How long a file of the bank must stay unchanged before it counts as complete. Default 60,000. */
  quietMs?: number | undefined
  /** Default 20,000. */
  connectMsMax?: number | undefined
  /** Default 600,000. */
  sessionMsMax?: number | undefined
}

/**
 * Delivers over SFTP through a folder on this machine. A file is uploaded under a temporary name and renamed when it is complete. Files of
 * the bank are fetched into the local inbox and then deleted from the server.
 */
export class SftpDelivery implements Delivery {
  private readonly options: SftpOptions
  private readonly local: FolderDelivery
  /** Remote files that were fetched, but that the server did not let us delete. */
  private readonly undeletable = new Set<string>()

  private constructor(options: SftpOptions, local: FolderDelivery) {
    this.options = options
    this.local = local
  }

  static async open(options: SftpOptions): Promise<SftpDelivery> {
    const { folder, recipients } = options
    // Only we write to the local inbox, and files appear there whole.
    return new SftpDelivery(options, await FolderDelivery.open({ folder, recipients, quietMs: 0 }))
  }

  async put(name: string, bytes: AsyncIterable<string | Uint8Array>): Promise<DeliveredFile> {
    const delivered = await this.local.put(name, bytes)
    await this.send(name)
    return delivered
  }

  /**
   * Sends a file of the local outbox. Its name there shows its progress:
   *
   * 1. `NAME`: being uploaded under a temporary name, or not yet.
   * 2. `.NAME.ID.releasing`: uploaded whole as `NAME.ID.part`, to be renamed.
   * 3. Gone: renamed.
   *
   * In state 2, a temporary file that is gone from the server was renamed by an attempt that was killed before it could record that, even
   * if the bank has taken the file since.
   */
  private async send(name: string): Promise<void> {
    const waiting = await readdir(this.local.outbox)
    const uploaded = waiting.map(each => releasing.exec(each)).find(found => found?.[1] === name)
    if (uploaded === undefined && !waiting.includes(name)) return
    await this.inSession(async sftp => {
      const id = uploaded?.[2] ?? (await this.upload(sftp, name))
      if (id !== undefined) await this.release(sftp, name, id)
    })
  }

  /** @returns the id of the temporary file; undefined if a concurrent attempt was faster */
  private async upload(sftp: Session, name: string): Promise<string | undefined> {
    const source = path.join(this.local.outbox, name)
    const id = randomBytes(6).toString('hex')
    const part = this.partOf(name, id)
    try {
      const { size } = await stat(source)
      await sftp.write(source, part)
      const written = await sftp.sizeOf(part)
      if (written !== size) throw new DeliveryProblem(`The server has ${written} of ${size} bytes of ${name}`)
      await renameDurably(source, this.releasingOf(name, id))
      return id
    } catch (error) {
      await sftp.unlink(part).catch(() => undefined)
      if (isErrno(error, 'ENOENT') && !(await exists(source))) return undefined
      throw error
    }
  }

  private async release(sftp: Session, name: string, id: string): Promise<void> {
    const part = this.partOf(name, id)
    const target = path.posix.join(this.options.outbox, name)
    if ((await sftp.sizeOf(part)) !== undefined) {
      try {
        await sftp.rename(part, target)
      } catch (error) {
        const isReleased = (await sftp.sizeOf(part)) === undefined
        if (!isReleased) throw new DeliveryProblem(`The server does not rename ${part} to ${target}`, error)
      }
    }
    await rm(this.releasingOf(name, id), { force: true })
    await syncFolder(this.local.outbox)
  }

  private releasingOf(name: string, id: string): string {
    return path.join(this.local.outbox, `.${name}.${id}.releasing`)
  }

  private partOf(name: string, id: string): string {
    return path.posix.join(this.options.uploads ?? this.options.outbox, `${name}.${id}.part`)
  }

  async list(now: Date): Promise<Inbox> {
    const skipped = await this.inSession(async sftp => await this.fetchAll(sftp, now))
    const inbox = await this.local.list(now)
    return { files: inbox.files, skipped: [...skipped, ...inbox.skipped] }
  }

  private async fetchAll(sftp: Session, now: Date): Promise<Inbox['skipped']> {
    const skipped: Inbox['skipped'] = []
    const { quietMs = sftpLimits.quietMsMin } = this.options
    const entries = (await sftp.readdir(this.options.inbox)).slice(0, limits.entriesMax)
    for (const { filename: name, attrs } of entries.sort((a, b) => a.attrs.mtime - b.attrs.mtime)) {
      if (isPartial(name) || now.getTime() - attrs.mtime * 1_000 < quietMs) continue
      const reason = this.reasonToSkip(name, attrs)
      if (reason !== undefined) {
        skipped.push({ name, reason })
        continue
      }
      try {
        await this.fetch(sftp, name, attrs)
      } catch (error) {
        if (!isRefusal(error)) throw error
        // A concurrent attempt was faster.
        if (!isMissing(error)) skipped.push({ name, reason: `the server does not let us read it: ${error.message}` })
      }
    }
    return skipped
  }

  private reasonToSkip(name: string, attrs: Stats): string | undefined {
    if (!isSafe(name)) return 'its name is too long or has characters that are not allowed'
    if (attrs.isSymbolicLink()) return 'it is a symbolic link'
    if (attrs.isDirectory()) return 'it is a directory'
    if (!attrs.isFile()) return 'it is not a regular file'
    if (attrs.size > sftpLimits.fileBytesMax) return `it is larger than ${sftpLimits.fileBytesMax} bytes`
    if (this.undeletable.has(identityOf(name, attrs))) return 'it was fetched, but the server does not let us delete it'
    return undefined
  }

  /**
   * Fetches a file and deletes it from the server. If it is killed in between, the next attempt fetches the file again and finds it
   * unchanged.
   */
  private async fetch(sftp: Session, name: string, attrs: Stats): Promise<void> {
    const remote = path.posix.join(this.options.inbox, name)
    const part = path.join(this.local.inbox, `.${randomBytes(6).toString('hex')}.part`)
    const { sha256, size } = await writeDurably(part, sftp.read(remote, attrs.size))
    try {
      // The file was truncated or written to during the read; the next attempt reads it again.
      if (size !== attrs.size || (await sftp.sizeOf(remote)) !== size) return
      // A bank may use a name again before the earlier file was read.
      const isFree = !(await exists(path.join(this.local.inbox, name)))
      await renameDurably(part, path.join(this.local.inbox, isFree ? name : `${sha256.slice(0, 12)}-${name}`))
    } finally {
      await rm(part, { force: true })
    }
    await sftp.unlink(remote).catch(error => {
      if (!isRefusal(error)) throw error
      this.undeletable.add(identityOf(name, attrs))
    })
  }

  get(name: string): AsyncIterable<Uint8Array> {
    return this.local.get(name)
  }

  async archive(name: string, day: Day, seal: SealFile): Promise<void> {
    await this.local.archive(name, day, seal)
  }

  async reject(name: string, report: string, seal: SealFile): Promise<void> {
    await this.local.reject(name, report, seal)
  }

  /** Connects, runs the work, and always disconnects. A session that takes too long is cut. */
  private async inSession<T>(work: (sftp: Session) => Promise<T>): Promise<T> {
    const { host, port = 22, sessionMsMax = sftpLimits.sessionMsMax } = this.options
    // A CommonJS package, whose names Node cannot import one by one.
    const client = new ssh2.Client()
    const timeout = setTimeout(() => client.destroy(), sessionMsMax)
    try {
      const session = await this.connect(client)
      return await work(session)
    } catch (error) {
      if (error instanceof DeliveryProblem) throw error
      const reason = error instanceof Error ? error.message : String(error)
      throw new DeliveryProblem(`SFTP with ${host}:${port} failed: ${reason}`, error)
    } finally {
      clearTimeout(timeout)
      client.end()
      client.destroy()
    }
  }

  private async connect(client: Client): Promise<Session> {
    const { host, port = 22, username, hostKeys, privateKeyFile, passwordFile } = this.options
    const credentials = {
      ...(privateKeyFile === undefined ? {} : { privateKey: await readSecret(privateKeyFile) }),
      ...(passwordFile === undefined ? {} : { password: (await readSecret(passwordFile)).replace(/\r?\n$/, '') }),
    }
    let presented = ''
    return await new Promise((resolve, reject) => {
      // Stays for a connection that breaks later: without a listener, such an error would end the process.
      client.on('error', error => {
        const isKnown = presented === '' || hostKeys.includes(presented)
        reject(
          isKnown ? error : new DeliveryProblem(`The key of ${host} is ${presented}, which is not in hostKeys`, error),
        )
      })
      client.once('close', () => reject(new Error('the server closed the connection')))
      client.once('ready', () => {
        // Calls are small and wait for each other.
        client.setNoDelay(true)
        client.sftp((error, sftp) => (error === undefined ? resolve(new Session(sftp, client)) : reject(error)))
      })
      client.connect({
        ...{ host, port, username, ...credentials },
        readyTimeout: this.options.connectMsMax ?? sftpLimits.connectMsMax,
        keepaliveInterval: sftpLimits.keepaliveMs,
        keepaliveCountMax: 3,
        hostVerifier: (key: Buffer) => {
          presented = `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`
          return hostKeys.includes(presented)
        },
      })
    })
  }
}

const releasing = /^\.(.+)\.([0-9a-f]{12})\.releasing$/

function identityOf(name: string, { size, mtime }: Stats): string {
  return `${name} ${size} ${mtime}`
}

/** The calls of SFTP as promises. A call whose connection breaks fails. */
class Session {
  private readonly sftp: SFTPWrapper
  private readonly broken: Promise<never>

  constructor(sftp: SFTPWrapper, client: Client) {
    this.sftp = sftp
    this.broken = new Promise((_, reject) => {
      client.once('close', () => reject(new Error('the connection was closed')))
    })
    this.broken.catch(() => undefined)
  }

  async readdir(folder: string): Promise<FileEntryWithStats[]> {
    return await this.call(done => this.sftp.readdir(folder, done))
  }

  async rename(from: string, to: string): Promise<void> {
    await this.call(done => this.sftp.rename(from, to, done))
  }

  async unlink(file: string): Promise<void> {
    await this.call(done => this.sftp.unlink(file, done))
  }

  /** @returns undefined if there is no such file */
  async sizeOf(file: string): Promise<number | undefined> {
    try {
      return (await this.call<Stats>(done => this.sftp.stat(file, done))).size
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  }

  /** Writes a local file to a new remote one, to the server's disk if it can. */
  async write(source: string, target: string): Promise<void> {
    const written = pipeline(createReadStream(source), this.sftp.createWriteStream(target, { flags: 'wx' }))
    await Promise.race([written, this.broken])
    const handle = await this.call<Buffer>(done => this.sftp.open(target, 'r+', done))
    try {
      await this.call(done => this.sftp.ext_openssh_fsync(handle, done))
    } catch {
      // Only OpenSSH has this call.
    } finally {
      await this.call(done => this.sftp.close(handle, done))
    }
  }

  /** Reads a remote file up to a size. */
  async *read(file: string, size: number): AsyncGenerator<Uint8Array> {
    if (size === 0) return
    const stream = this.sftp.createReadStream(file, { start: 0, end: size - 1 })
    const chunks = stream[Symbol.asyncIterator]()
    try {
      for (;;) {
        const { value, done } = await Promise.race([chunks.next(), this.broken])
        if (done === true) return
        yield value
      }
    } finally {
      stream.destroy()
    }
  }

  private async call<T = void>(
    start: (done: (error: Error | null | undefined, value?: T) => void) => void,
  ): Promise<T> {
    const answer = new Promise<T>((resolve, reject) => {
      start((error, value) => (error ? reject(error) : resolve(value as T)))
    })
    return await Promise.race([answer, this.broken])
  }
}

/** Whether the server answered a call with an error. All other errors are the connection's, or ours. */
function isRefusal(error: unknown): error is Error & { code: number } {
  return error instanceof Error && 'code' in error && typeof error.code === 'number'
}

function isMissing(error: unknown): boolean {
  const noSuchFile = 2
  return isRefusal(error) && error.code === noSuchFile
}
