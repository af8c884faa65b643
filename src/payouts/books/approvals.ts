import { type Reader, sql, type Tx } from '../../database/database.ts'
import { problem } from '../../kernel/errors.ts'
import * as batches from './batches.ts'
import { type Decider, hasDecided, refuseUnlessAnother } from './two-people.ts'

/** People who must approve a batch above the limits for automatic approval. */
export const approvalsNeeded = 2

/**
 * Approves a closed batch for a person. With the second person it may be sent. Idempotent for the same person. All approvals of a
 * batch come from users of the console, or all from logins: nothing tells whether a user and a login are the same person.
 * @returns how many people have approved it, and whether the person had not before
 */
export async function approve(
  tx: Tx,
  { batchId, now, ...by }: { batchId: string; now: Date } & Decider,
): Promise<{ approvalCount: number; hasChanged: boolean }> {
  const batch = await batches.lock(tx, batchId)
  if (batch.status !== 'building') throw problem('Conflict', `The batch is ${batch.status}; it needs no approval`)
  if (batch.closedAt === null) {
    throw problem(
      'Conflict',
      `The batch takes payments until ${batch.cutOffAt.toISOString()}; approve it after that, or close it early`,
    )
  }
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

/** Who approved a batch, and when, oldest first. */
export async function listApprovals(db: Reader, batchId: string): Promise<Approval[]> {
  return await db
    .selectFrom('payoutBatchApprovals')
    .select(['person', 'login', 'at'])
    .where('batchId', '=', batchId)
    .orderBy('at')
    .orderBy('person')
    .execute()
}
