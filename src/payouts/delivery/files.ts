import { constants } from 'node:fs'
import { lstat, open, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { measured, syncFolder } from '../../kernel/files.ts'
import { type DeliveredFile, DeliveryProblem, isErrno } from './delivery.ts'

// Flags for reading without following a symbolic link, and without waiting for the other end of a pipe.
const noSurprises = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/**
 * Writes a new file, readable only by us, and returns once it is on the disk. A file that could not be written whole is removed.
 * @throws DeliveryProblem if the disk is full or not writable
 */
export async function writeDurably(file: string, bytes: AsyncIterable<string | Uint8Array>): Promise<DeliveredFile> {
  try {
    const handle = await open(file, 'wx', 0o600)
    try {
      const written = await measured(bytes, { use: chunk => handle.appendFile(chunk) })
      await handle.sync()
      return written
    } finally {
      await handle.close()
    }
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) await rm(file, { force: true })
    throw explained(error, path.dirname(file))
  }
}

/** Renames a file within its file system, or to a folder on the same one, and makes that survive a power cut. */
export async function renameDurably(from: string, to: string): Promise<void> {
  try {
    await rename(from, to)
    await syncFolder(path.dirname(to))
    if (path.dirname(from) !== path.dirname(to)) await syncFolder(path.dirname(from))
  } catch (error) {
    throw explained(error, path.dirname(to))
  }
}

/**
 * Reads a regular file in chunks.
 * @throws DeliveryProblem
 */
export async function* readRegular(file: string): AsyncGenerator<Uint8Array> {
  const handle = await open(file, noSurprises).catch(error => {
    throw isErrno(error, 'ELOOP', 'ENXIO')
      ? new DeliveryProblem(`${file} is not a regular file`, error)
      : explained(error, file)
  })
  try {
    if (!(await handle.stat()).isFile()) throw new DeliveryProblem(`${file} is not a regular file`)
    yield* handle.createReadStream({ autoClose: false })
  } finally {
    await handle.close()
  }
}

export async function exists(file: string): Promise<boolean> {
  try {
    await lstat(file)
    return true
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false
    throw error
  }
}

/** Names the remedy of the usual errors of a file system. All others are returned as they are. */
function explained(error: unknown, place: string): unknown {
  if (isErrno(error, 'ENOSPC', 'EDQUOT'))
    return new DeliveryProblem(`No space is left in ${place}; free some space`, error)
  if (isErrno(error, 'EACCES', 'EPERM', 'EROFS'))
    return new DeliveryProblem(`Access to ${place} is denied; allow Midmonth’s user to read and write there`, error)
  if (isErrno(error, 'EXDEV'))
    return new DeliveryProblem(`${place} is on another file system than its sibling folders`, error)
  return error
}
