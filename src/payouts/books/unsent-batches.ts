import { sql, type Tx } from '../../database/database.ts'
import { conflict } from '../../kernel/errors.ts'
import { isUnsent } from './batch-lifecycle.ts'
import * as batches from './batches.ts'
import { findPayout, lockPayout } from './decided-payments.ts'
import { lockRail } from './rail-lock.ts'
import { recordOutcome } from './reports.ts'

// Operators' changes to a batch before it is sent.

/** Holds an unsent batch, or releases it. Idempotent. @returns whether that changed anything */
export async function setHeld(tx: Tx, { batchId, held }: { batchId: string; held: boolean }): Promise<boolean> {
  const batch = await batches.lock(tx, batchId)
  refuseSent(batch)
  if (batch.held === held) return false
  await sql`
    update payout_batches set held = ${held} where id = ${batchId}`.execute(tx)
  return true
}

/**
 * Takes a payment out of an unsent batch. It counts as failed, so the member gets the money back.
 * @param payment its reference, or the withdrawal's id
 * @param reason the text that the partner and the member read
 */
export async function remove(
  tx: Tx,
  { payment, reason, now }: { payment: string; reason: string; now: Date },
): Promise<{ partnerId: string; withdrawalId: string; batchId: string }> {
  const { rail, batchId } = await findPayout(tx, payment)
  // Locks in the order of the importer and of the sender: the rail, the batch, the payment.
  await lockRail(tx, { rail, for: 'records' })
  const batch = batchId === null ? undefined : await batches.lock(tx, batchId)
  const { reference, partnerId, withdrawalId, netAmount, outcome } = await lockPayout(tx, payment)
  if (batch === undefined || batchId === null || outcome !== null)
    throw conflict(`${reference} is not waiting in a batch, so it cannot be removed`)
  refuseSent(batch)
  await sql`
    update payouts set removed_at = ${now}, outcome = 'failed'
     where partner_id = ${partnerId} and withdrawal_id = ${withdrawalId}`.execute(tx)
  await sql`
    update payout_batches set payment_count = payment_count - 1, control_total = control_total - ${netAmount}
     where id = ${batchId}`.execute(tx)
  const ended = { rail, reference, messageId: 'operator', entryKey: `removed ${reference}`, now }
  await recordOutcome(tx, { ...ended, outcome: 'failed', reason })
  return { partnerId, withdrawalId, batchId }
}

function refuseSent({ status, sendingAt }: batches.Batch): void {
  if (!isUnsent(status)) throw conflict(`The batch is ${status}, so it cannot be changed`)
  if (sendingAt !== null) throw conflict('The file of the batch is being delivered, so the batch cannot be changed')
}
