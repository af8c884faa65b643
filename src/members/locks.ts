import { type Reader, sql, type Tx } from '../database/database.ts'
import { conflict } from '../kernel/errors.ts'
import type { Currency } from '../kernel/money.ts'
import type { MemberStatus } from './schema.ts'

/** `instructedAt`: when the partner gave the instruction behind the latest change. `isErased`: for callers other than the books, the member does not exist. */
export type LockedMember = {
  id: string
  status: MemberStatus
  currency: Currency
  instructedAt: Date
  isErased: boolean
}

export type OfMember = { partnerId: string; memberId: string }

type OfMembers = { partnerId: string; memberIds: string[] }

/**
 * Locks members against every other operation that moves their pay or changes them.
 *
 * The lock order of the whole program. A transaction takes the locks that it needs from the top of this list down, so that no two
 * transactions wait for each other:
 * 1. the idempotency key, and then the named locks of erasures;
 * 2. the partner's row (floats, pauses) or a tier, which operators change; their holders take no lock of 3 to 6, so that a
 *    completed withdrawal can lock the partner's row last, for the low-float alert;
 * 3. the open pay cycle, for share, or for no key update to close it; or the closed one that is being released;
 * 4. the members, in id order;
 * 5. their intents and withdrawals, in id order, and pay runs;
 * 6. their ledger balances, which only the lock holder of the member changes;
 * 7. the totals of the float, and last the event feed.
 * @param memberIds may contain duplicates and unknown ids
 * @param options.waits whether to wait for members that are locked; if not, they are skipped
 * @returns the members that exist, in id order
 */
export async function lockMembers(
  tx: Tx,
  { partnerId, memberIds, waits = true }: OfMembers & { waits?: boolean },
): Promise<LockedMember[]> {
  const { rows } = await sql<LockedMember>`
    select m.id, m.status, ${currencyOfMember(partnerId)} as currency, m.instructed_at, m.erased_at is not null as is_erased
      from members m
     where m.partner_id = ${partnerId} and m.id = any(${memberIds}::text[])
     ${waits ? lockOfMembers.waiting : lockOfMembers.skipping}`.execute(tx)
  return rows
}

/**
 * Locks a member for a change that an erasure would destroy, so that the change does not outlive the erasure.
 * @throws Problem `Conflict` if the member is erased
 */
export async function excludeErasure(tx: Tx, { partnerId, memberId }: OfMember): Promise<void> {
  const [member] = await lockMembers(tx, { partnerId, memberIds: [memberId] })
  if (member?.isErased) throw conflict('The member was erased, and takes no more metadata')
}

/**
 * SQL for the end of a statement that locks the rows `m` of `members`, in lock order, with or without waiting for them.
 * `no key update` suffices: `for update` would wait for transactions that only refer to the member by a foreign key.
 */
export const lockOfMembers = {
  waiting: sql`order by m.partner_id, m.id for no key update of m`,
  skipping: sql`order by m.partner_id, m.id for no key update of m skip locked`,
}

/** SQL for the currency of a row `m` of the partner's members: that of the tier. */
const currencyOfMember = (partnerId: string) =>
  sql<Currency>`(select t.currency from tiers t where t.partner_id = ${partnerId} and t.name = m.tier)`

/** The currencies of the members that exist, by id. */
export async function currenciesOf(db: Reader, { partnerId, memberIds }: OfMembers): Promise<Map<string, Currency>> {
  const { rows } = await sql<{ id: string; currency: Currency }>`
    select m.id, ${currencyOfMember(partnerId)} as currency from members m
     where m.partner_id = ${partnerId} and m.id = any(${memberIds}::text[])`.execute(db)
  return new Map(rows.map(row => [row.id, row.currency]))
}
