import { type Reader, sql, type Tx } from '../../database/database.ts'
import { conflict } from '../../kernel/errors.ts'
import * as batches from './batches.ts'
import { type Decider, hasDecided, refuseUnlessAnother } from './two-people.ts'

/** How many people must approve a batch that is above the limits for automatic approval. */
export const approvalsNeeded = 2

/**
 * Approves a closed batch in a person's name; after the second approval it can be sent. Idempotent for the same person. The approvals of a
 * batch all come from console users, or all from logins, because a user and a login may be the same person.
 * @returns how many people have approved the batch, and whether this approval is new
 */
export async function approve(
  tx: Tx,
  { batchId, now, ...by }: { batchId: string; now: Date } & Decider,
): Promise<{ approvalCount: number; hasChanged: boolean }> {
  const batch = await batches.lock(tx, batchId)
  if (batch.status !== 'building') throw conflict(`The batch is ${batch.status}; it needs no approval`)
  if (batch.closedAt === null)
    throw conflict(
      `The batch takes payments until ${batch.cutOffAt.toISOString()}; approve it after that, or close it early`,
    )
  const earlier = await listApprovals(tx, batchId)
  const hasChanged = !hasDecided(earlier, by)
  refuseUnlessAnother(hasChanged ? earlier : [], { verb: 'approve the batch', by })
  if (hasChanged) {
    const { person, login = null } = by
    await sql`
      insert into payout_batch_approvals (batch_id, person, login, at)
      values (${batchId}, ${person}, ${login}, ${now})`.execute(tx)
  }
  const people = await listApprovals(tx, batchId)
  if (people.length >= approvalsNeeded) {
    await sql`
      update payout_batches set status = 'approved', approved_at = ${now} where id = ${batchId}`.execute(tx)
  }
  return { approvalCount: people.length, hasChanged }
}

type Approval = { person: string; login: string | null; at: Date }

/** The approvals of a batch, oldest first. */
export async function listApprovals(db: Reader, batchId: string): Promise<Approval[]> {
  return await db
    .selectFrom('payoutBatchApprovals')
    .select(['person', 'login', 'at'])
    .where('batchId', '=', batchId)
    .orderBy('at')
    .orderBy('person')
    .execute()
}
