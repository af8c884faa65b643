import { type Reader, sql, type Tx } from '../database/database.ts'
import type { Money } from '../kernel/money.ts'
import { byOneReference } from './books/by-reference.ts'
import { referenceOf } from './payments/reference.ts'

type ClaimedWithdrawals = {
  rail: string
  claimed: { partnerId: string; withdrawalId: string; netAmount: Money }[]
  now: Date
}

/**
 * Gives withdrawals that a rail has claimed their references at the bank.
 * @returns the references by withdrawal id
 */
export async function create(tx: Tx, { rail, claimed, now }: ClaimedWithdrawals): Promise<Map<string, string>> {
  const references = new Map(claimed.map(each => [each.withdrawalId, referenceOf(each)]))
  await sql`
    with created as (
      insert into payouts (partner_id, withdrawal_id, reference, rail, net_amount, currency, created_at)
      select partner_id, withdrawal_id, reference, ${rail}, net_amount, currency, ${now}
        from unnest(${claimed.map(({ partnerId }) => partnerId)}::text[], ${[...references.keys()]}::text[],
                    ${[...references.values()]}::text[], ${claimed.map(({ netAmount }) => netAmount.amount)}::bigint[],
                    ${claimed.map(({ netAmount }) => netAmount.currency)}::text[])
          as c (partner_id, withdrawal_id, reference, net_amount, currency)
      returning reference, partner_id
    )
    insert into payout_references (reference, partner_id) select reference, partner_id from created`.execute(tx)
  return references
}

/** Finds the withdrawal that a bank report names; undefined if the reference is not ours. */
export async function findByReference(
  db: Reader,
  reference: string,
): Promise<{ partnerId: string; withdrawalId: string } | undefined> {
  const isNamed = await byOneReference(db, reference)
  const { rows } = await sql<{ partnerId: string; withdrawalId: string }>`
    select partner_id, withdrawal_id from payouts where ${isNamed()}`.execute(db)
  return rows[0]
}

/** Frees the references of a partner's payments. Only a sandbox on Citus may do so. */
export async function removeReferences(tx: Tx, partnerId: string): Promise<void> {
  await sql`delete from payout_references where partner_id = ${partnerId}`.execute(tx)
}
