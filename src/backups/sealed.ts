import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { createGunzip, createGzip } from 'node:zlib'
import { measured } from '../kernel/files.ts'
import { decrypted, encrypted } from '../sealing/age.ts'

// A file of a backup is compressed by gzip, and encrypted by age: `age -d -i identity FILE | gunzip` reads it.

/** Where a backup goes. @property recipients public keys of age: the service can write backups, but not read them */
export type BackupTarget = { dir: string; recipients: readonly string[] }

export type Written = { bytes: number; sha256: string }

/**
 * Writes a new file that survives a crash of the machine once it has returned.
 * @returns the size and the checksum of the file as it is on disk
 */
export async function writeSealed(
  file: string,
  { bytes, recipients }: { bytes: AsyncIterable<Uint8Array>; recipients: readonly string[] },
): Promise<Written> {
  const handle = await open(file, 'wx', 0o600)
  try {
    const sealed = encrypted(through(bytes, createGzip({ level: 1 })), recipients)
    const { size, sha256 } = await measured(sealed, { use: chunk => handle.writeFile(chunk) })
    await handle.sync()
    return { bytes: size, sha256 }
  } finally {
    await handle.close()
  }
}

/**
 * Reads what `writeSealed` has written.
 * @throws Error if no identity opens it, or it is damaged, perhaps after the first bytes
 */
export async function* readSealed(file: string, identities: readonly string[]): AsyncGenerator<Uint8Array> {
  try {
    yield* through(decrypted(createReadStream(file), identities), createGunzip())
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`${file} cannot be read (${reason})`, { cause: error })
  }
}

function through(bytes: AsyncIterable<Uint8Array>, zipper: ReturnType<typeof createGzip | typeof createGunzip>) {
  const source = Readable.from(bytes)
  source.on('error', error => zipper.destroy(error))
  return source.pipe(zipper)
}
