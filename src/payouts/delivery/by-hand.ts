import { randomUUID } from 'node:crypto'
import { link, rm } from 'node:fs/promises'
import path from 'node:path'
import { measured, syncFolder } from '../../kernel/files.ts'
import { type DeliveredFile, DeliveryProblem, isErrno, NotDelivered } from './delivery.ts'
import { exists, readRegular, writeDurably } from './files.ts'

/**
 * Writes a file that an operator carries to the bank: complete and on the disk, or not under its name. Never replaces a file. A file with
 * the same bytes counts as written: a killed export has left it.
 * @throws NotDelivered if the file is not there; DeliveryProblem if another file is, which may be with the bank
 */
export async function putByHand(file: string, bytes: AsyncIterable<string>): Promise<DeliveredFile> {
  const part = `${file}.${randomUUID()}.part`
  let written: DeliveredFile
  let isNew: boolean
  try {
    written = await writeDurably(part, bytes)
    isNew = await linkUnlessThere(part, file)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new NotDelivered(`The file was not written, and the batch was not sent: ${reason}`, error)
  } finally {
    await rm(part, { force: true })
  }
  await syncFolder(path.dirname(file))
  if (!isNew && (await measured(readRegular(file))).sha256 !== written.sha256) throw otherBytes(file)
  return written
}

/**
 * Finds a file that a manual export may have left, and checks it. Writes nothing.
 * @returns undefined if there is none
 * @throws DeliveryProblem if it has other bytes
 */
export async function findByHand(file: string, bytes: AsyncIterable<string>): Promise<DeliveredFile | undefined> {
  if (!(await exists(file))) return undefined
  const found = await measured(readRegular(file))
  if (found.sha256 !== (await measured(bytes)).sha256) throw otherBytes(file)
  // The export that left it may have been killed before its name was on the disk.
  await syncFolder(path.dirname(file))
  return found
}

function otherBytes(file: string): DeliveryProblem {
  return new DeliveryProblem(`${file} exists with other bytes; find out whether it went to the bank, then move it away`)
}

async function linkUnlessThere(from: string, to: string): Promise<boolean> {
  try {
    // Unlike a rename, a link never replaces a file.
    await link(from, to)
    return true
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false
    throw error
  }
}
