import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { isReadOnly } from '../database/errors.ts'
import * as events from '../events/events.ts'
import type { Currency } from '../kernel/money.ts'
import type { Day } from '../kernel/time.ts'

const limits = {
  // Takes a few tens of milliseconds of a request. The worker does the rest within a minute.
  eventsOfRequestMax: 1_000,
  // Takes a few hundred milliseconds.
  eventsAtOnceMax: 5_000,
}

/** The withdrawals of a period, in minor units. */
export type Totals = {
  withdrawals: number
  grossAmount: bigint
  /** The fees that members paid, as part of the gross amount. */
  fees: bigint
  employerFees: bigint
  /** Cancelled, failed and returned withdrawals, and their gross amount. */
  givenBack: number
  givenBackGrossAmount: bigint
}

export const noTotals: Totals = {
  withdrawals: 0,
  grossAmount: 0n,
  fees: 0n,
  employerFees: 0n,
  givenBack: 0,
  givenBackGrossAmount: 0n,
}

/**
 * Adds the next events of a partner's feed to its totals. A withdrawal counts on its day; a cancelled, failed or returned one
 * counts again on the day on which the money was given back. Both count in the pay cycle of the withdrawal.
 *
 * Safe to run twice: the position up to which the feed is added up is recorded in the same transaction, under a lock.
 * @param waits whether to wait for another transaction that adds up the same feed
 * @returns how many events were read
 */
async function addUp(
  tx: Tx,
  { partnerId, countMax, waits }: { partnerId: string; countMax: number; waits: boolean },
): Promise<number> {
  await sql`
    insert into withdrawal_total_feeds (partner_id, position) values (${partnerId}, 0) on conflict do nothing`.execute(
    tx,
  )
  // A separate statement, so that the next one sees what the previous lock holder has added.
  const { rows: feeds } = await sql<{ position: bigint }>`
    select position from withdrawal_total_feeds where partner_id = ${partnerId}
       for update ${waits ? sql`` : sql`skip locked`}`.execute(tx)
  const [feed] = feeds
  if (feed === undefined) return 0
  const { rows } = await sql<{ count: number }>`
    with next as (
      select position, type, resource_id, created_at from events
       where partner_id = ${partnerId} and position > ${feed.position} order by position limit ${countMax}
    ), changes as (
      select w.currency, w.gross_amount, w.fee, w.employer_fee, w.pay_cycle_id, e.type = 'withdrawal.held' as is_made,
             (e.created_at at time zone p.time_zone)::date::text as day
        from next e
        join withdrawals w on w.partner_id = ${partnerId} and w.id = e.resource_id
        join partners p on p.id = ${partnerId}
       where e.type in ('withdrawal.held', 'withdrawal.cancelled', 'withdrawal.failed', 'withdrawal.returned')
    ), added as (
      insert into withdrawal_totals as t (partner_id, currency, kind, period, withdrawals, gross_amount, fees, employer_fees,
                                          given_back, given_back_gross_amount)
      select ${partnerId}, currency, kind, period, count(*) filter (where is_made),
             coalesce(sum(gross_amount) filter (where is_made), 0), coalesce(sum(fee) filter (where is_made), 0),
             coalesce(sum(employer_fee) filter (where is_made), 0), count(*) filter (where not is_made),
             coalesce(sum(gross_amount) filter (where not is_made), 0)
        from changes cross join lateral (values ('day', day), ('cycle', pay_cycle_id)) as of (kind, period)
       group by currency, kind, period
          on conflict (partner_id, currency, kind, period) do update
         set withdrawals = t.withdrawals + excluded.withdrawals, gross_amount = t.gross_amount + excluded.gross_amount,
             fees = t.fees + excluded.fees, employer_fees = t.employer_fees + excluded.employer_fees,
             given_back = t.given_back + excluded.given_back,
             given_back_gross_amount = t.given_back_gross_amount + excluded.given_back_gross_amount
    ), moved as (
      update withdrawal_total_feeds set position = (select max(position) from next)
       where partner_id = ${partnerId} and exists (select from next)
    )
    select count(*)::integer as count from next`.execute(tx)
  return rows[0]?.count ?? 0
}

/** The partners with numbered events that are not added up yet. */
async function partnersToAddUp(db: Reader): Promise<string[]> {
  const { rows } = await sql<{ partnerId: string }>`
    select n.partner_id from event_feeds n left join withdrawal_total_feeds f on f.partner_id = n.partner_id
     where n.last_position > coalesce(f.position, 0) order by n.partner_id`.execute(db)
  return rows.map(({ partnerId }) => partnerId)
}

/** Adds up the feeds of all partners. */
export async function addUpAll(db: Db): Promise<void> {
  const countMax = limits.eventsAtOnceMax
  for (const partnerId of await partnersToAddUp(db)) {
    const addNext = () => db.transaction().execute(tx => addUp(tx, { partnerId, countMax, waits: false }))
    while ((await addNext()) === countMax);
  }
}

/**
 * Adds up the events since the worker's last run, up to a thousand, so that a partner sees its last withdrawal.
 * @returns whether the totals are complete
 */
export async function addUpLatest(db: Db, partnerId: string): Promise<boolean> {
  const countMax = limits.eventsOfRequestMax
  const isBehind = (await events.hasUnnumbered(db, partnerId)) || (await isBehindFeed(db, partnerId))
  if (!isBehind) return true
  try {
    return await db.transaction().execute(async tx => {
      // Number the feed first, so that it has the latest events.
      const numbered = await events.numberFeed(tx, { partnerId, countMax, waits: true })
      return (await addUp(tx, { partnerId, countMax, waits: true })) < countMax && numbered < countMax
    })
  } catch (error) {
    // A read-only database still has the totals of earlier runs.
    if (isReadOnly(error)) return false
    throw error
  }
}

async function isBehindFeed(db: Reader, partnerId: string): Promise<boolean> {
  const { rows } = await sql`
    select from event_feeds n left join withdrawal_total_feeds f on f.partner_id = n.partner_id
     where n.partner_id = ${partnerId} and n.last_position > coalesce(f.position, 0)`.execute(db)
  return rows.length > 0
}

type TotalsRow = Totals & { currency: Currency; period: string }

type PeriodsAsked = { partnerId: string; currency?: Currency; kind: 'day' | 'cycle'; periods: string[] }

/** The totals of some periods, in all currencies or in one. */
export async function ofPeriods(
  db: Reader,
  { partnerId, currency, kind, periods }: PeriodsAsked,
): Promise<TotalsRow[]> {
  return await select(
    db,
    sql`partner_id = ${partnerId} and kind = ${kind} and period = any(${periods}::text[])
        ${currency === undefined ? sql`` : sql`and currency = ${currency}`}`,
  )
}

/** The totals of the days in a range that have withdrawals, first and last day included. */
export async function ofDays(
  db: Reader,
  { partnerId, currency, from, to }: { partnerId: string; currency: Currency; from: Day; to: Day },
): Promise<TotalsRow[]> {
  return await select(
    db,
    sql`partner_id = ${partnerId} and currency = ${currency} and kind = 'day' and period between ${from} and ${to}`,
  )
}

async function select(db: Reader, where: ReturnType<typeof sql>): Promise<TotalsRow[]> {
  const { rows } = await sql<TotalsRow>`
    select currency, period, withdrawals::float8 as withdrawals, gross_amount, fees, employer_fees,
           given_back::float8 as given_back, given_back_gross_amount
      from withdrawal_totals where ${where}`.execute(db)
  return rows
}
