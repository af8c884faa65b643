import type { Tx } from '../../database/database.ts'
import { conflict, problem } from '../../kernel/errors.ts'
import * as batches from './batches.ts'
import type { FileRailSettings } from './file-rail-settings.ts'
import { proposeOrConfirm } from './proposals.ts'
import { lockRail } from './rail-lock.ts'
import type { Decider } from './two-people.ts'

type EarlyClosing = {
  rail: FileRailSettings
  batchId: string
  by: Decider & { isKey?: boolean }
  note: string
  now: Date
}

/**
 * Closes an open batch before its cut-off, or proposes to, if this is the first of two people. A closed batch takes no payments, and is
 * approved at once if it is within the limits. It keeps its value date; payments that come later are in a separate batch.
 * @param isKey for an operator key: one person can have two
 * @returns what was done: `repeated` if the same person had proposed it
 * @throws Problem `Conflict` if it is closed, `Forbidden` for an operator key
 */
export async function closeEarly(
  tx: Tx,
  { rail, batchId, by, note, now }: EarlyClosing,
): Promise<'closed' | 'proposed' | 'repeated'> {
  if (by.isKey)
    throw problem(
      'Forbidden',
      'Two people must close a batch early, in the console or by command; an operator key cannot',
    )
  // Locks in the order of the task that closes batches.
  await lockRail(tx, { rail: rail.name, for: 'batches' })
  const { status, closedAt } = await batches.lock(tx, batchId)
  if (closedAt !== null || status !== 'building') throw conflict('The batch is closed already')
  const done = await proposeOrConfirm(tx, { subject: batchId, decision: { decision: 'close' }, note, by, now })
  if (done !== 'confirmed') return done
  await batches.closeNow(tx, { rail, batchId, now })
  return 'closed'
}
