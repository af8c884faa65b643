import { type Reader, sql, type Tx } from '../database/database.ts'
import type { Currency } from '../money.ts'

export type LockedMember = { id: string; status: 'invited' | 'active' | 'inactive'; currency: Currency }

/**
 * Locks members against every other operation that moves their pay or changes them.
 *
 * The lock order of the whole program. A transaction takes what it needs of this list from the top down, so that no two
 * transactions wait for each other:
 * 1. the idempotency key;
 * 2. the partner's row (floats, pauses) or a tier, which operators change;
 * 3. the open pay cycle, for share, or for no key update to close it;
 * 4. the members, in id order;
 * 5. their intents and withdrawals, in id order, and pay runs;
 * 6. their ledger balances, which only the lock holder of the member changes;
 * 7. the totals of the float, and last the event feed.
 *
 * `no key update` suffices: `for update` would wait for transactions that only refer to the member by a foreign key.
 * @param memberIds may hold duplicates and unknown ids
 * @returns the members that exist, in id order
 */
export async function lockMembers(
  tx: Tx,
  { partnerId, memberIds }: { partnerId: string; memberIds: string[] },
): Promise<LockedMember[]> {
  const { rows } = await sql<LockedMember>`
    select m.id, m.status, ${currencyOfMember} as currency from members m
     where m.partner_id = ${partnerId} and m.id = any(${memberIds}::text[])
     order by m.id for no key update`.execute(tx)
  return rows
}

/** SQL for the currency of a row `m` of `members`: that of the tier. */
const currencyOfMember = sql`(select t.currency from tiers t where t.partner_id = m.partner_id and t.name = m.tier)`

/** The currencies of the members that exist, by id. */
export async function currenciesOf(
  db: Reader,
  { partnerId, memberIds }: { partnerId: string; memberIds: string[] },
): Promise<Map<string, Currency>> {
  const { rows } = await sql<{ id: string; currency: Currency }>`
    select m.id, ${currencyOfMember} as currency from members m
     where m.partner_id = ${partnerId} and m.id = any(${memberIds}::text[])`.execute(db)
  return new Map(rows.map(row => [row.id, row.currency]))
}
