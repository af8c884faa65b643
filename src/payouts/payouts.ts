import { type Reader, sql, type Tx } from '../database/database.ts'
import type { Money } from '../kernel/money.ts'
import { hasReference } from './by-reference.ts'
import { newReference } from './reference.ts'

/**
 * Gives withdrawals that a rail has claimed their references at the bank.
 * @returns the references by withdrawal id
 */
export async function create(
  tx: Tx,
  {
    rail,
    claimed,
    now,
  }: { rail: string; claimed: { partnerId: string; withdrawalId: string; netAmount: Money }[]; now: Date },
): Promise<Map<string, string>> {
  const references = new Map(claimed.map(({ withdrawalId }) => [withdrawalId, newReference()]))
  await sql`
    with created as (
      insert into payouts (partner_id, withdrawal_id, reference, rail, amount, currency, created_at)
      select partner_id, withdrawal_id, reference, ${rail}, amount, currency, ${now}
        from unnest(${claimed.map(({ partnerId }) => partnerId)}::text[], ${[...references.keys()]}::text[],
                    ${[...references.values()]}::text[], ${claimed.map(({ netAmount }) => netAmount.amount)}::bigint[],
                    ${claimed.map(({ netAmount }) => netAmount.currency)}::text[])
          as c (partner_id, withdrawal_id, reference, amount, currency)
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
  const { rows } = await sql<{ partnerId: string; withdrawalId: string }>`
    select partner_id, withdrawal_id from payouts where ${hasReference(reference)}`.execute(db)
  return rows[0]
}

/** How far the reports of a rail have been read; null before the first. */
export async function cursorOf(db: Reader, feed: string): Promise<string | null> {
  const row = await db.selectFrom('railCursors').select('cursor').where('rail', '=', feed).executeTakeFirst()
  return row?.cursor ?? null
}

/** Concurrent readers may overwrite each other; reports that are then read again change nothing. */
export async function setCursor(
  tx: Tx,
  { rail, cursor, now }: { rail: string; cursor: string; now: Date },
): Promise<void> {
  await tx
    .insertInto('railCursors')
    .values({ rail, cursor, readAt: now })
    .onConflict(conflict => conflict.column('rail').doUpdateSet({ cursor, readAt: now }))
    .execute()
}

/** Lets one reader of reports go on from where another is. */
export async function copyCursor(tx: Tx, { from, to, now }: { from: string; to: string; now: Date }): Promise<void> {
  const cursor = await cursorOf(tx, from)
  if (cursor !== null) await setCursor(tx, { rail: to, cursor, now })
}
