import { Type } from 'typebox'
import { strictObject } from '../../kernel/schemas.ts'
import type { Day } from '../../kernel/time.ts'
import type { SealFile } from './sealed-file.ts'

/** How files reach the bank and come back. Every call is idempotent, so it may be repeated after a crash. */
export type Delivery = {
  /**
   * Delivers a file. The file appears under its name complete, and once: repeating the call does nothing, even if the bank has taken the
   * file since.
   * @throws DeliveryProblem if a file of this name with other bytes was delivered before
   */
  put(name: string, bytes: AsyncIterable<string | Uint8Array>): Promise<DeliveredFile>
  /** Lists the complete files of the inbox, oldest first, and the entries that need a person. */
  list(now: Date): Promise<Inbox>
  /** Reads a file of the inbox. The file can be larger than memory. */
  get(name: string): AsyncIterable<Uint8Array>
  /** Moves a file of the inbox to the archive of a day, sealed. Does nothing if the file is gone. */
  archive(name: string, day: Day, seal: SealFile): Promise<void>
  /** Moves a file of the inbox to the rejected files, sealed, with a report beside it. Does nothing if the file is gone. */
  reject(name: string, report: string, seal: SealFile): Promise<void>
}

/** @property sha256 in hexadecimal */
export type DeliveredFile = { sha256: string; size: number }

/** @property skipped entries that are not files, or cannot be read. They are left in place. */
export type Inbox = { files: InboxFile[]; skipped: { name: string; reason: string }[] }
export type InboxFile = { name: string; size: number; modifiedAt: Date }

const Name = Type.String({ minLength: 1, maxLength: 140 })
export const AbsolutePath = Type.String({ pattern: '^/.' })

/** A bank's SFTP server, as the settings of a rail name it. */
export const SftpServer = strictObject({
  host: Name,
  port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535 })),
  username: Name,
  /** Fingerprints of the server's keys, as `ssh-keygen -lf` prints them: 'SHA256:…'. Two while the bank changes its key. */
  hostKeys: Type.Array(Type.String({ pattern: '^SHA256:[A-Za-z0-9+/]{43}$' }), { minItems: 1, maxItems: 10 }),
  /** Set one of the two. Only Midmonth's user may be able to read the files. */
  privateKeyFile: Type.Optional(AbsolutePath),
  passwordFile: Type.Optional(AbsolutePath),
  /** The server's folders for files to and from the bank. */
  outbox: Name,
  inbox: Name,
  /** Where files are uploaded before they are renamed into the outbox, on the same file system. Default the outbox. */
  uploads: Type.Optional(Name),
})

export const limits = {
  // The most entries of a directory. A bank sends a few files a day.
  entriesMax: 10_000,
  // The longest name, with room for our suffixes. Most file systems allow 255 bytes.
  nameBytesMax: 180,
}

/** A file was not delivered or fetched, for a reason that the operator can remove. The next attempt continues. */
export class DeliveryProblem extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'DeliveryProblem'
  }
}

/** It is certain that no part of the file can have reached the bank. */
export class NotDelivered extends DeliveryProblem {}

/** Names that programs give to files that they are still writing. */
export function isPartial(name: string): boolean {
  return (
    name.startsWith('.') ||
    name.endsWith('~') ||
    /\.(part|partial|filepart|tmp|temp|swp|crdownload|writing)$/i.test(name)
  )
}

/** Whether a name stays within its folder and can be written to a log and a terminal. */
export function isSafe(name: string): boolean {
  // U+FFFD stands for bytes that are not UTF-8: such a file cannot be opened by its name.
  return !/[/\\\p{C}\ufffd]/u.test(name) && !name.startsWith('.') && bytesOf(name) <= limits.nameBytesMax && name !== ''
}

/** @throws DeliveryProblem */
export function refuseUnsafe(name: string): void {
  if (!isSafe(name)) throw new DeliveryProblem(`${JSON.stringify(name)} is not a file name that we use`)
}

function bytesOf(text: string): number {
  return Buffer.byteLength(text)
}

export function isErrno(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code))
}
