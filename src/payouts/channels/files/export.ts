import { hostname } from 'node:os'
import path from 'node:path'
import { type Reader, sql, type Tx } from '../../../database/database.ts'
import { lockByNameIfFree } from '../../../database/named-locks.ts'
import { conflict } from '../../../kernel/errors.ts'
import { measured } from '../../../kernel/files.ts'
import type { TaskContext } from '../../../worker/task.ts'
import * as batches from '../../books/batches.ts'
import * as copies from '../../books/copies.ts'
import type { FileRailSettings } from '../../books/file-rail-settings.ts'
import { findByHand, putByHand } from '../../delivery/by-hand.ts'
import { NotDelivered } from '../../delivery/delivery.ts'
import { type RecordExport, type SentFile, send } from './send.ts'

type Export = {
  rail: FileRailSettings
  batchId: string
  folder: string
  person: string
  isFirstUnsent?: boolean
  record?: RecordExport
}

/**
 * Writes the file of an approved batch into a folder, for an operator who carries it to the bank. The batch then counts as sent.
 *
 * An export that was killed may have left its file, and the file may be with the bank. If the bank has answered the batch, it
 * is: the batch then counts as sent without being written again. Otherwise only the folder with that file is accepted, unless the
 * operator says that the first file was not sent.
 * @param person who carries it
 * @param isFirstUnsent the operator's word that no file of an earlier export was sent
 * @param record writes the audit entries, in the transaction that records the batch as sent
 * @returns `path` is null if the bank has answered; `isNew`: whether the file was written now; undefined if the batch is not
 * approved, or is held
 * @throws Error for the operator; if it is a NotDelivered, this export has written nothing
 */
export async function exportBatch(
  context: TaskContext,
  { rail, batchId, folder, person, isFirstUnsent = false, record }: Export,
): Promise<(SentFile & { path: string | null; isNew: boolean }) | undefined> {
  requireByHand(rail)
  const { db } = context
  let written: string | null = null
  let isNew = false
  const put = async (name: string, bytes: AsyncIterable<string>) => {
    const file = path.join(folder, name)
    const begun = await batches.findBegunExport(db, batchId)
    if (begun !== null && !isFirstUnsent) {
      const found = await findByHand(file, bytes)
      if (found === undefined) throw new NotDelivered(maybeSent(begun))
      written = file
      return found
    }
    const recordBegun = (place: string | null) =>
      db.transaction().execute(tx => batches.recordBegunExport(tx, { batchId, place }))
    await recordBegun(`${hostname()}:${path.resolve(folder)}`)
    written = file
    isNew = true
    try {
      return await putByHand(file, bytes)
    } catch (error) {
      if (error instanceof NotDelivered) await recordBegun(begun)
      throw error
    }
  }
  // The lock is held by a transaction that does nothing else. A command exports one batch, so its second connection is free.
  const sent = await db.transaction().execute(async turn => {
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(turn)
    await lockExport(turn, batchId)
    return await send(context, { rail, batchId, exportedBy: person, put, record })
  })
  return sent && { ...sent, path: written, isNew }
}

function maybeSent(begun: string): string {
  return (
    `An export into ${begun} broke off, so the bank may have the file. If the file is there, export into that folder again. If ` +
    'it went to the bank, import the bank’s answer first. If it was not sent, add --first-file-not-sent'
  )
}

/**
 * Fixes the file of an approved batch, for an operator who downloads it and carries it to the bank; see `fileOf`. The batch then
 * counts as sent. Nothing leaves, so one transaction does it all: on one connection, which others at once do not wait for.
 * @returns undefined if the batch is not approved, or is held
 * @throws Problem `Conflict` if an export into a folder may have written the file
 */
export async function markExported(
  tx: Tx,
  { rail, batchId, now }: { rail: FileRailSettings; batchId: string; now: Date },
): Promise<SentFile | undefined> {
  requireByHand(rail)
  await lockExport(tx, batchId)
  const begun = await batches.findBegunExport(tx, batchId)
  if (begun !== null) {
    const message = `An export into ${begun} broke off, so the bank may have the file; finish it with midmonth payouts export`
    throw conflict(message)
  }
  const batch = await batches.claimForSending(tx, { rail, batchId, now })
  if (batch === undefined) return undefined
  const { sha256 } = await measured(rail.format.write(batches.toWrite(tx, { rail, batch })))
  await batches.recordSent(tx, { batchId, sha256, now })
  return { name: batch.fileName, sha256, valueDate: batch.valueDate }
}

/** Of two exports at once, each would make a file. */
async function lockExport(tx: Tx, batchId: string): Promise<void> {
  if (!(await lockByNameIfFree(tx, 'export of', batchId)))
    throw conflict('Another command is exporting the batch; only its file must go to the bank')
}

type TakenCopy = Omit<copies.NewCopy, 'kind' | 'timeZone'> & {
  rail: FileRailSettings
  kind: 'export' | 'download'
  isAgain: boolean
}

/**
 * Records that a person is about to take the file of a sent batch to the bank. A second copy of it can pay all members twice, so it has
 * to be asked for as such.
 * @param isAgain the person's word that the bank does not have another copy
 * @returns the number of the copy
 * @throws Problem `Conflict` with who had the file before, and when
 */
export async function recordCopy(tx: Tx, { batchId, rail, isAgain, ...copy }: TakenCopy): Promise<number> {
  await batches.lock(tx, batchId)
  const earlier = await copies.list(tx, batchId)
  if (earlier.length > 0 && !isAgain)
    throw conflict(
      `The file has left already: ${copies.inWords(earlier)}. If the bank gets it twice, it may pay all members twice; ask for it ` +
        'again only if the bank does not have it',
    )
  return await copies.record(tx, { batchId, timeZone: rail.timeZone, ...copy })
}

type RepeatedExport = { rail: FileRailSettings; batchId: string; folder: string; person: string; record: RecordExport }

/**
 * Writes the file of a sent batch into a folder once more, for a bank that does not have it.
 * @throws Problem as `fileOf` and `recordCopy`; NotDelivered if nothing was written
 */
export async function exportAgain(
  { db, now }: TaskContext,
  { rail, batchId, folder, person, record }: RepeatedExport,
): Promise<SentFile & { path: string; isNew: boolean }> {
  const { name, sha256, valueDate, parts } = await fileOf(db, { rail, batchId })
  const copy = { batchId, rail, kind: 'export', person, isAgain: true } as const
  const number = await db.transaction().execute(async tx => {
    await record(tx, { sha256 })
    return await recordCopy(tx, { ...copy, now: now() })
  })
  const file = path.join(folder, name)
  try {
    await putByHand(file, parts())
  } catch (error) {
    if (error instanceof NotDelivered) await db.transaction().execute(tx => copies.forget(tx, { batchId, number }))
    throw error
  }
  return { name, sha256, valueDate, path: file, isNew: true }
}

/**
 * The file of a batch that was sent: always the same bytes. The caller records that it leaves.
 * @throws Problem `NotFound`; `Conflict` if the batch was not sent, or its file would not be the same
 */
export async function fileOf(
  db: Reader,
  { rail, batchId }: { rail: FileRailSettings; batchId: string },
): Promise<SentFile & { parts: () => AsyncIterable<string> }> {
  const batch = await batches.get(db, batchId)
  const { fileName: name, fileSha256: sha256 } = batch
  if (name === null || sha256 === null) throw conflict('The batch has no file yet; export it once it is approved')
  const parts = () => rail.format.write(batches.toWrite(db, { rail, batch }))
  // The account that pays is in the settings of the rail, which may have changed.
  if ((await measured(parts())).sha256 !== sha256)
    throw conflict('The file would differ from the one that was exported: the settings of the rail have changed')
  return { name, sha256, valueDate: batch.valueDate, parts }
}

/** @throws Problem `Conflict` if the worker delivers the files of the rail */
export function requireByHand(rail: FileRailSettings): void {
  if (rail.delivery !== null) throw conflict(`The rail ${rail.name} sends its files itself`)
}
