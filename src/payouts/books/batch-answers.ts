import { type Columns, sql, type Tx } from '../../database/database.ts'
import type { BankFileHead, BankRecord } from '../formats/bank-files.ts'
import { keepRecords, sumUnpaid } from './bank-records.ts'
import { statusesBefore } from './batch-lifecycle.ts'
import * as batches from './batches.ts'
import * as exceptions from './exceptions.ts'
import { gravestOf } from './reasons.ts'
import { type Context, fingerprintOf, type Keyed } from './record-keys.ts'

export type BatchRow = Columns<'payoutBatches', 'id' | 'status' | 'controlTotal' | 'currency'> & {
  unpaid: bigint
  paidCount: number
  unansweredCount: number
}

/** Locks the batch that the bank answers by its message id; undefined if it is not ours, or was not sent. */
export async function lockAnswered(tx: Tx, { rail, now }: Context, messageId: string): Promise<BatchRow | undefined> {
  const { rows } = await sql<Columns<'payoutBatches', 'id' | 'status' | 'controlTotal' | 'currency'>>`
    select id, status, control_total, currency from payout_batches
     where rail = ${rail.name} and message_id = ${messageId} and sending_at is not null for update`.execute(tx)
  const [batch] = rows
  if (batch === undefined) return undefined
  await batches.recordAnswered(tx, { batchIds: [batch.id], now })
  const { rows: counts } = await sql<{ paidCount: number; unansweredCount: number }>`
    select (count(*) filter (where outcome in ('paid', 'returned')))::integer as paid_count,
           (count(*) filter (where outcome is null))::integer as unanswered_count
      from payouts where batch_id = ${batch.id}`.execute(tx)
  const { paidCount = 0, unansweredCount = 0 } = counts[0] ?? {}
  return { ...batch, unpaid: await sumUnpaid(tx, batch.id), paidCount, unansweredCount }
}

/** Applies what a message says about a whole batch. A rejection is decided after all payments of the batch. */
export async function answerBatch(
  tx: Tx,
  context: Context,
  { head, record }: { head: BankFileHead; record: Keyed<Extract<BankRecord, { type: 'batch' }>> },
): Promise<void> {
  const { rail, fileId, now } = context
  const { messageId, state, line } = record
  await keepRecords(tx, context, { head, kept: [{ record, reference: messageId }] })
  const batch = await lockAnswered(tx, context, messageId)
  if (batch === undefined) {
    const [fingerprint, reason] = [fingerprintOf(head, record), 'The bank answers a batch that we did not send']
    const about = { reference: messageId, reasonCode: gravestOf(record.reasonCodes), file: { id: fileId, line } }
    await exceptions.open(tx, [{ rail: rail.name, kind: 'unmatched', fingerprint, reason, ...about }], now)
  } else if (state !== 'rejected') {
    await batches.recordSignOfCopy(tx, { batchIds: [batch.id], now })
    const isAccepted = state === 'acknowledged' || state === 'partly'
    if (isAccepted && isGivenBack(batch)) return await openAccepted(tx, context, record)
    await markBatch(tx, { batchId: batch.id, as: 'acknowledged', now })
  }
}

/** Whether the money of every payment of a batch was given back. */
export function isGivenBack({ paidCount, unansweredCount, unpaid }: BatchRow): boolean {
  return paidCount === 0 && unansweredCount === 0 && unpaid > 0n
}

/** Banks accept a batch in several messages, which share one exception. */
async function openAccepted(
  tx: Tx,
  { rail, fileId, now }: Context,
  { messageId, line }: Keyed<Extract<BankRecord, { type: 'batch' }>>,
): Promise<void> {
  const accepted: exceptions.NewException = {
    ...{ rail: rail.name, kind: 'paid_after_give_back', reference: messageId, file: { id: fileId, line } },
    fingerprint: `given back ${messageId} accepted`,
    reason:
      'The bank accepts the batch, but the money of its payments was given back to the members; find out whether the bank pays it, ' +
      'and hold the rail until you know',
  }
  await exceptions.open(tx, [accepted], now)
}

/** Marks a batch that is at the bank. If the sender was killed before it recorded the delivery, the batch is marked when it is recorded. */
export async function markBatch(
  tx: Tx,
  { batchId, as: status, now }: { batchId: string; as: 'acknowledged' | 'rejected'; now: Date },
): Promise<void> {
  const at = status === 'acknowledged' ? { acknowledgedAt: now } : { endedAt: now }
  const batch = tx.updateTable('payoutBatches').where('id', '=', batchId)
  await batch.set(at).where('status', '=', 'approved').execute()
  await batch
    .set({ ...at, status })
    .where('status', 'in', statusesBefore(status))
    .execute()
}

// Results of a check of a payee's name, the best first. RVCM and RVNC are about a whole message.
const nameChecks = ['RCVC', 'RVNA', 'RVNC', 'RVMC', 'RVCM', 'RVNM']

/** A name check says nothing about the payment. The worst result is stored with the batch. */
export async function checkName(
  tx: Tx,
  { rail }: Context,
  { messageId, code }: Extract<BankRecord, { type: 'name-check' }>,
): Promise<void> {
  // An unknown code is worse only than a match.
  const better = nameChecks.slice(0, Math.max(1, nameChecks.indexOf(code)))
  await sql`
    update payout_batches set name_check = ${code.slice(0, 35)}
     where rail = ${rail.name} and message_id = ${messageId}
       and (name_check is null or name_check = any(${better}::text[]))`.execute(tx)
}
