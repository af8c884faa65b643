import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { read } from 'node:fs'
import { type FileHandle, open, readdir, rm, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { FileBody } from '../../contract/bodies.ts'
import { problem } from '../../kernel/errors.ts'
import type { TableKind } from '../../tabular/tabular.ts'
import type { FileKind } from './file-kinds.ts'

/** A request body that arrived as a file. The file is on disk, without a name, until the response is sent. */
export class UploadedFile extends FileBody {
  override readonly kind: FileKind
  readonly bytes: number
  /** In hexadecimal digits. */
  readonly sha256: string
  private readonly handle: FileHandle
  private borrowers = 0
  private isAnswered = false

  constructor(handle: FileHandle, { kind, bytes, sha256 }: { kind: FileKind; bytes: number; sha256: string }) {
    super()
    this.handle = handle
    this.kind = kind
    this.bytes = bytes
    this.sha256 = sha256
  }

  /** For routes that accept tables only. */
  get tableKind(): TableKind {
    assert(this.kind !== 'bytes')
    return this.kind
  }

  /**
   * Lends the descriptor of the open file. The file stays open until `work` has ended, even if the caller disconnects first: the
   * number of a closed descriptor is reused by the next file that is opened.
   */
  async lend<T>(work: (fd: number) => Promise<T>): Promise<T> {
    if (this.isAnswered) throw problem('BadRequest', 'The caller has disconnected')
    this.borrowers += 1
    try {
      return await work(this.handle.fd)
    } finally {
      this.borrowers -= 1
      await this.closeUnused()
    }
  }

  /** Call this when the response is sent, or the caller has disconnected. */
  async answered(): Promise<void> {
    this.isAnswered = true
    await this.closeUnused()
  }

  /** Makes the fingerprint of a request depend on the file's content, not on where it is stored. */
  toJSON(): { kind: FileKind; sha256: string } {
    return { kind: this.kind, sha256: this.sha256 }
  }

  private async closeUnused(): Promise<void> {
    // Idempotent: a closed handle is not closed again.
    if (this.isAnswered && this.borrowers === 0) await this.handle.close()
  }
}

const readAt = promisify(read)
const chunkBytes = 65_536

/**
 * Reads an open file from its beginning, in chunks. A stream would close the descriptor when its reader stops early, even with
 * `autoClose: false`, and closing the descriptor a second time may close another file or connection.
 */
export async function* chunksOf(fd: number): AsyncGenerator<Uint8Array> {
  for (let position = 0; ; ) {
    const { bytesRead, buffer } = await readAt(fd, Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, position)
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/**
 * Opens a file and unlinks it immediately. The file holds bank details: this way the operating system frees it however this
 * process ends, even by SIGKILL.
 */
export async function openNameless(): Promise<FileHandle> {
  const file = path.join(tmpdir(), `${filePrefix}${randomUUID()}`)
  const handle = await open(file, 'wx+', 0o600)
  try {
    await unlink(file)
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

/**
 * Removes files of any age that earlier processes left in the temporary folder. Safe while other processes run: they have opened
 * their files and never look them up by name.
 */
export async function removeLeftBehind(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    // Best effort: the file may belong to another user, or already be gone.
    if (name.startsWith(filePrefix)) await rm(path.join(tmpdir(), name), { recursive: true }).catch(() => undefined)
  }
}

const filePrefix = 'midmonth-upload-'
