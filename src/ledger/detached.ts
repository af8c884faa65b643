import { type Reader, sql } from '../database/database.ts'
import { problem } from '../kernel/errors.ts'
import type { Currency } from '../kernel/money.ts'
import { addDays, type Day, dayIn, startOfDay } from '../kernel/time.ts'

// Months of transfers that an operator has detached (docs/operations/detached-years.md).

/** @property month its first day @property transfers how many were detached; those that no seal covers have stayed as well */
export type DetachedMonth = { month: Day; transfers: bigint; detachedAt: Date }

/** The detached months, oldest first. Together they are the beginning of the books. */
export async function listDetached(db: Reader): Promise<DetachedMonth[]> {
  const { rows } = await sql<DetachedMonth>`
    select month, transfers, detached_at from detached_months order by month`.execute(db)
  return rows
}

/** The end of the detached months. Null if no transfers are detached. */
export async function detachedUntil(db: Reader): Promise<Date | null> {
  return endOf(await listDetached(db))
}

function endOf(months: DetachedMonth[]): Date | null {
  const last = months.at(-1)?.month
  if (last === undefined) return null
  const [year = 0, month = 0] = last.split('-').map(Number)
  return new Date(Date.UTC(year, month))
}

/**
 * Refuses to read transfers since an instant if some of them are detached.
 * @param path the query parameter that asks for them
 * @param timeZone of the days that are asked for
 * @throws Problem `QueryValidation`
 */
export async function requireAttached(
  db: Reader,
  since: Date,
  { path, timeZone = 'UTC' }: { path: string; timeZone?: string },
): Promise<void> {
  const missing = await describeDetached(db, since, timeZone)
  if (missing !== null) throw problem('QueryValidation', missing, { path })
}

/** Says which transfers since an instant are detached, and how they are attached again. Null if none are. */
export async function describeDetached(db: Reader, since: Date, timeZone: string): Promise<string | null> {
  const months = await listDetached(db)
  const until = endOf(months)
  if (until === null || since >= until) return null
  const whole = firstWholeDay(timeZone, until)
  const ofDay = startOfDay(timeZone, whole) > until ? `, with a part of ${addDays(whole, -1)} in ${timeZone}` : ''
  const years = new Set(months.map(({ month }) => Number(month.slice(0, 4))))
  const newestFirst = [...years].filter(year => year >= since.getUTCFullYear()).reverse()
  return `The transfers before ${until.toISOString().slice(0, 10)} are detached${ofDay}; the operator can attach them again, with midmonth ledger attach ${newestFirst.join(', then ')}`
}

/** The first day of a time zone that begins at or after an instant. */
export function firstWholeDay(timeZone: string, since: Date): Day {
  const day = dayIn(timeZone, since)
  return startOfDay(timeZone, day) < since ? addDays(day, 1) : day
}

/** What a member had available and owed at the end of the detached months; zero without such transfers. */
export async function detachedBalance(
  db: Reader,
  { partnerId, memberId, currency }: { partnerId: string; memberId: string; currency: Currency },
): Promise<{ available: bigint; owed: bigint }> {
  const { rows } = await sql<{ available: bigint; owed: bigint }>`
    select coalesce(sum(member_available), 0)::bigint as available, coalesce(-sum(member_owed), 0)::bigint as owed
      from detached_member_sums
     where partner_id = ${partnerId} and member_id = ${memberId} and currency = ${currency}`.execute(db)
  return rows[0] ?? { available: 0n, owed: 0n }
}
