import { type Reader, sql } from '../database/database.ts'
import { problem } from '../kernel/errors.ts'
import type { Currency } from '../kernel/money.ts'
import type { Day } from '../kernel/time.ts'

// Months of transfers that an operator has detached (docs/operations/detached-years.md). Their schema exists once there are some.

/** @property month its first day @property transfers how many were detached; those that no seal covers have stayed as well */
export type DetachedMonth = { month: Day; transfers: bigint; detachedAt: Date }

/** The detached months, oldest first. Together they are the beginning of the books. */
export async function listDetached(db: Reader): Promise<DetachedMonth[]> {
  if (!(await hasDetached(db))) return []
  const { rows } = await sql<DetachedMonth>`
    select month, transfers, detached_at from detached.months order by month`.execute(db)
  return rows
}

async function hasDetached(db: Reader): Promise<boolean> {
  const { rows } = await sql<{ exists: boolean }>`
    select exists (select from pg_tables where schemaname = 'detached' and tablename = 'months') as exists`.execute(db)
  return rows[0]?.exists === true
}

/** The end of the detached months. Null if no transfers are detached. */
export async function detachedUntil(db: Reader): Promise<Date | null> {
  const last = (await listDetached(db)).at(-1)?.month
  if (last === undefined) return null
  const [year = 0, month = 0] = last.split('-').map(Number)
  return new Date(Date.UTC(year, month))
}

/**
 * Refuses to read transfers since an instant if some of them are detached.
 * @param path the query parameter that asks for them
 * @throws Problem `QueryValidation`
 */
export async function requireAttached(db: Reader, since: Date, { path }: { path: string }): Promise<void> {
  const until = await detachedUntil(db)
  if (until !== null && since < until) throw problem('QueryValidation', describeDetached(since, until), { path })
}

/** Says that transfers of the time since an instant are detached, and how they come back. */
export function describeDetached(since: Date, until: Date): string {
  return `The transfers before ${until.toISOString().slice(0, 10)} are detached; the operator can attach them again, with midmonth ledger attach ${since.getUTCFullYear()}`
}

/** What a member had available and owed at the end of the detached months; zero without such transfers. */
export async function detachedBalance(
  db: Reader,
  { partnerId, memberId, currency }: { partnerId: string; memberId: string; currency: Currency },
): Promise<{ available: bigint; owed: bigint }> {
  const nothing = { available: 0n, owed: 0n }
  if (!(await hasDetached(db))) return nothing
  const { rows } = await sql<typeof nothing>`
    select coalesce(sum(member_available), 0)::bigint as available, coalesce(-sum(member_owed), 0)::bigint as owed
      from detached.member_sums
     where partner_id = ${partnerId} and member_id = ${memberId} and currency = ${currency}`.execute(db)
  return rows[0] ?? nothing
}
