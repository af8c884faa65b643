import { type Cursor, unknownCursor } from '../../database/cursor.ts'
import { type Page, type Reader, sql } from '../../database/database.ts'
import type { Batch } from './batches.ts'

// Batches belong to the operator. A partner of a sandbox sees those that hold only its own payments, so that nothing of
// another partner shows.

export type PartnerBatch = Pick<
  Batch,
  | 'id'
  | 'messageId'
  | 'rail'
  | 'currency'
  | 'debtor'
  | 'valueDate'
  | 'status'
  | 'paymentCount'
  | 'controlTotal'
  | 'sentAt'
>

/** The batches that hold payments of this partner only, newest first. Removed payments count as well. */
export async function list(
  db: Reader,
  { partnerId, page, cursor }: { partnerId: string; page: Page; cursor: Cursor | undefined },
): Promise<PartnerBatch[]> {
  const isUnknown = cursor !== undefined && (await find(db, { partnerId, batchId: cursor.id })) === undefined
  if (isUnknown) throw unknownCursor(cursor)
  return await select(db, { partnerId, page, cursor })
}

/** Returns a batch; undefined if there is none, or it holds a payment of another partner. */
export async function find(
  db: Reader,
  { partnerId, batchId }: { partnerId: string; batchId: string },
): Promise<PartnerBatch | undefined> {
  const [batch] = await select(db, { partnerId, batchId, page: { skip: 0, take: 1 } })
  return batch
}

type BatchSelection = { partnerId: string; batchId?: string; page: Page; cursor?: Cursor | undefined }

async function select(db: Reader, { partnerId, batchId, page, cursor }: BatchSelection): Promise<PartnerBatch[]> {
  const { rows } = await sql<PartnerBatch>`
    select id, message_id, rail, currency, debtor, value_date, status, payment_count, control_total, sent_at
      from payout_batches b
     where b.id in (select batch_id from payouts where partner_id = ${partnerId} and batch_id is not null)
       and b.id not in (select batch_id from payouts
                         where partner_id <> ${partnerId} and batch_id = any(array(
                           select batch_id from payouts where partner_id = ${partnerId} and batch_id is not null)))
           ${batchId === undefined ? sql`` : sql`and id = ${batchId}`}
           ${cursor === undefined ? sql`` : sql`and id < ${cursor.id}`}
     order by id desc offset ${page.skip} limit ${page.take}`.execute(db)
  return rows
}

/** The payments of a batch as its file has them, ordered by reference. */
export async function listPayments(
  db: Reader,
  { partnerId, batchId, countMax }: { partnerId: string; batchId: string; countMax: number },
): Promise<{ reference: string; netAmount: bigint }[]> {
  const { rows } = await sql<{ reference: string; netAmount: bigint }>`
    select reference, net_amount from payouts
     where partner_id = ${partnerId} and batch_id = ${batchId} and removed_at is null
     order by reference limit ${countMax}`.execute(db)
  return rows
}
