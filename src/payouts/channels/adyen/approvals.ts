import { type Db, sql, type Tx } from '../../../database/database.ts'
import * as withdrawals from '../../../withdrawals/withdrawals.ts'
import * as batches from '../../books/batches.ts'
import { byReference, hasReference } from '../../books/by-reference.ts'
import * as railHolds from '../../books/rail-holds.ts'
import { lockRail } from '../../books/rail-lock.ts'
import { findRestore } from '../../books/restores.ts'
import type { AdyenSettings } from './settings.ts'

// Payments of an API are approved in batches with the same commands as those of files. The payments of one submission are a batch,
// but a payment above the limit for one payment has a separate batch, so that it does not delay the others.

// Per run, which is one a minute.
const releasedMax = 500

type Unsent = { reference: string; netAmount: bigint; batchId: string | null; sentAt: Date | null }

/**
 * Puts payments without a batch into batches, and approves batches within the limits.
 * @returns the references of those that may be requested now; none while the rail is held
 */
export async function admit(
  tx: Tx,
  { settings, references, now }: { settings: AdyenSettings; references: string[]; now: Date },
): Promise<ReadonlySet<string>> {
  // What the bank may have been sent before a restore joins no batch before the bank is compared.
  if (references.length === 0 || (await findRestore(tx)) !== undefined) return new Set()
  const { name, automatic } = settings
  await lockRail(tx, { rail: name, for: 'batches' })
  // In the order of the operator's decisions: batches, then payments.
  await sql`
    select from payout_batches
     where id = any(array(select batch_id from payouts where ${hasReference(references)})) order by id for update`.execute(
    tx,
  )
  const rows: Unsent[] = []
  for (const isNamed of await byReference(tx, references)) {
    const unsent = await sql<Unsent>`
      select reference, net_amount, batch_id, sent_at from payouts
       where rail = ${name} and ${isNamed()} and outcome is null and transfer_id is null
       order by reference for update`.execute(tx)
    rows.push(...unsent.rows)
  }
  const joining = rows.filter(({ batchId, sentAt }) => batchId === null && sentAt === null)
  const isLarge = ({ netAmount }: Unsent) => automatic !== null && netAmount > automatic.paymentMax
  const together = joining.filter(each => !isLarge(each))
  for (const payments of [...joining.filter(isLarge).map(each => [each]), ...(together.length > 0 ? [together] : [])])
    await batches.addClosed(tx, { rail: settings, payments, now })
  await batches.closeDue(tx, { rail: settings, now })
  if (await railHolds.isHeld(tx, name)) return new Set()
  const { rows: placed } = await sql<{ batchId: string }>`
    select distinct batch_id from payouts
     where ${hasReference(references)} and batch_id is not null and outcome is null`.execute(tx)
  await batches.claimForRequests(tx, { batchIds: placed.map(({ batchId }) => batchId), now })
  const admitted = await sql<{ reference: string }>`
    select p.reference from payouts p left join payout_batches b on b.id = p.batch_id
     where p.rail = ${name} and ${hasReference(references, { of: 'p' })} and p.outcome is null
       and (b.id is null or b.sent_at is not null)`.execute(tx)
  return new Set(admitted.rows.map(({ reference }) => reference))
}

type Releasing = { db: Db; settings: AdyenSettings; now: Date }

/** Makes payments of approved or released batches due for resubmission at once, and settles answered batches. */
export async function releaseApproved({ db, settings, now }: Releasing): Promise<void> {
  const { name: rail } = settings
  await db.transaction().execute(tx => batches.closeDue(tx, { rail: settings, now }))
  await db.transaction().execute(async tx => {
    await lockRail(tx, { rail, for: 'records' })
    await batches.settleAnswered(tx, { rail, now })
  })
  if (await railHolds.isHeld(db, rail)) return
  const { rows } = await sql<{ partnerId: string; withdrawalId: string }>`
    select p.partner_id, p.withdrawal_id from payouts p join payout_batches b on b.id = p.batch_id
     where b.rail = ${rail} and b.status = 'approved' and not b.held and p.outcome is null
     order by p.reference limit ${releasedMax}`.execute(db)
  for (const { partnerId, withdrawalId } of rows)
    await db.transaction().execute(tx => withdrawals.bringForward(tx, { partnerId, withdrawalId, now }))
}
