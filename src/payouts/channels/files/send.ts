import type { Tx } from '../../../database/database.ts'
import { measured } from '../../../kernel/files.ts'
import type { Day } from '../../../kernel/time.ts'
import type { TaskContext } from '../../../worker/task.ts'
import * as batches from '../../books/batches.ts'
import type { FileRailSettings } from '../../books/file-rail-settings.ts'
import { NotDelivered } from '../../delivery/delivery.ts'

/**
 * Closes due batches and delivers approved ones. May be killed at any point and run again, also concurrently: a batch always
 * gives the same file, and a repeated delivery does nothing.
 */
export async function sendBatches({ db, log, now }: TaskContext, rail: FileRailSettings): Promise<void> {
  await db.transaction().execute(tx => batches.closeDue(tx, { rail, now: now() }))
  const endRest = () => batches.endRest(db, { rail: rail.name, now: now() })
  await endRest()
  await db.transaction().execute(tx => batches.endDue(tx, { rail, now: now() }))
  await endRest()
  const delivery = await rail.delivery?.()
  if (delivery === undefined) return
  const failures: unknown[] = []
  for (const batchId of await batches.listSendable(db, rail.name)) {
    // One batch's failure must not delay the others.
    await send({ db, log, now }, { rail, batchId, put: (name, bytes) => delivery.put(name, bytes) }).catch(error => {
      log.error({ err: error, rail: rail.name, batchId }, 'a batch was not delivered; it is tried again every minute')
      failures.push(error)
    })
  }
  if (failures.length > 0) throw failures[0]
}

export type SentFile = { name: string; sha256: string; valueDate: Day }

/** Writes the audit entries of a batch that an operator exports. */
export type RecordExport = (tx: Tx, sent: { sha256: string }) => Promise<void>

type BatchToSend = {
  rail: FileRailSettings
  batchId: string
  /** The operator who carries the file to the bank; without one, the worker delivers it. */
  exportedBy?: string
  record?: RecordExport | undefined
  put: (name: string, bytes: AsyncIterable<string>) => Promise<{ sha256: string }>
}

/**
 * Writes one approved batch and delivers it, unless the bank has answered it. Claim and commit, deliver, record and commit.
 * @param put delivers the file; idempotent for the same bytes
 * @param record runs in the transaction that records the batch as sent
 * @returns undefined if the batch cannot be sent now
 */
export async function send(
  { db, log, now }: TaskContext,
  { rail, batchId, exportedBy, put, record }: BatchToSend,
): Promise<SentFile | undefined> {
  const leaves =
    exportedBy === undefined
      ? ({ kind: 'delivery', person: null } as const)
      : ({ kind: 'export', person: exportedBy } as const)
  // Committed before the file leaves: a sender that is killed may have delivered it.
  const batch = await db.transaction().execute(async tx => {
    const isAtBank = await batches.isAnswered(tx, batchId)
    return await batches.claimForSending(tx, { rail, batchId, leaves: isAtBank ? undefined : leaves, now: now() })
  })
  if (batch === undefined) return undefined
  const { valueDate, missed, copy } = batch
  if (missed !== null) log.info({ rail: rail.name, batchId, missed, valueDate }, 'a late batch took another value date')
  let isWriterAtFault = false
  const content = async function* () {
    try {
      yield* rail.format.write(batches.toWrite(db, { rail, batch }))
    } catch (error) {
      isWriterAtFault = true
      throw error
    }
  }
  try {
    // An earlier sender was killed after it had delivered the file.
    const isAtBank = copy === null
    const { sha256 } = isAtBank ? await measured(content()) : await put(batch.fileName, content())
    await db.transaction().execute(async tx => {
      await batches.recordSent(tx, { batchId, sha256, now: now() })
      await record?.(tx, { sha256 })
    })
    const { messageId, paymentCount } = batch
    log.info({ rail: rail.name, batchId, messageId, payments: paymentCount, sha256 }, 'a batch was sent')
    return { name: batch.fileName, sha256, valueDate }
  } catch (error) {
    // An undelivered file can still change: the faulty payment can be removed, or the batch held.
    if (isWriterAtFault || error instanceof NotDelivered)
      await db.transaction().execute(tx => batches.unclaim(tx, { batchId, copy }))
    throw error
  }
}
