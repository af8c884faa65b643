import type { RawBuilder } from 'kysely'
import { type Reader, sql } from '../database/database.ts'
import { firstId } from '../kernel/ids.ts'
import type { Currency } from '../kernel/money.ts'
import { addDays, type Day, startOfDay } from '../kernel/time.ts'
import { requireAttached } from '../ledger/detached.ts'

/** Fees of the withdrawals of a day and tier, in minor units: charged on that day, and given back on it. */
export type FeeLine = {
  day: Day
  tier: string
  currency: Currency
  withdrawals: number
  givenBack: number
  memberFees: bigint
  memberFeesGivenBack: bigint
  employerFees: bigint
  employerFeesGivenBack: bigint
}

/** The changes of a month in one currency. */
type FeeSums = Omit<FeeLine, 'day' | 'tier'> & {
  /** Fees of members that became revenue, less fees booked back. */
  collected: bigint
}

export type FeeStatement = { month: string; lines: FeeLine[]; sums: FeeSums[] }

/** The first and the last day of a month, '2026-03'. */
export function daysOf(month: string): { first: Day; last: Day } {
  const first = `${month}-01`
  const inNextMonth = addDays(first, 31).slice(0, 7)
  return { first, last: addDays(`${inNextMonth}-01`, -1) }
}

/** Returns the instants that bound some days in a time zone; the second is exclusive. */
export function instantsOf(timeZone: string, { first, last }: { first: Day; last: Day }): { from: Date; to: Date } {
  return { from: startOfDay(timeZone, first), to: startOfDay(timeZone, addDays(last, 1)) }
}

// The condition of the index ledger_transfers_of_fees: transfers `t` of fees other than the charges of withdrawals.
const changesFees = sql`(t.debit = 'fees' or (t.credit = 'fees' and t.reason <> 'withdrawal.held'))`

type Span = { partnerId: string; from: Date; to: Date }

/**
 * The fees of a month, by day and tier, and their sums, by the partner's time zone.
 * @throws Problem `QueryValidation` if transfers of the month are detached
 */
export async function readStatement(
  db: Reader,
  { partnerId, timeZone, month }: { partnerId: string; timeZone: string; month: string },
): Promise<FeeStatement> {
  const span = { partnerId, ...instantsOf(timeZone, daysOf(month)) }
  await requireAttached(db, span.from, { path: 'month', timeZone })
  const lines = await listLines(db, span)
  const { rows } = await sql<{ currency: Currency; collected: bigint }>`
    select currency, sum(case when credit = 'revenue' then amount else -amount end)::bigint as collected
      from ledger_transfers t
     where ${changesFees}
       and partner_id = ${partnerId} and id >= ${firstId('transfer', span.from)} and id < ${firstId('transfer', span.to)}
       and reason in ('fees.collected', 'fees.booked_back')
     group by currency`.execute(db)
  const collected = new Map(rows.map(row => [row.currency, row.collected]))
  const currencies = [...new Set([...lines.map(({ currency }) => currency), ...collected.keys()])].sort()
  return {
    month,
    lines,
    sums: currencies.map(currency => ({ ...sumOf(lines, currency), collected: collected.get(currency) ?? 0n })),
  }
}

function sumOf(lines: FeeLine[], currency: Currency): Omit<FeeSums, 'collected'> {
  const sum = {
    ...{ currency, withdrawals: 0, givenBack: 0, memberFees: 0n, memberFeesGivenBack: 0n },
    ...{ employerFees: 0n, employerFeesGivenBack: 0n },
  }
  for (const line of lines.filter(each => each.currency === currency)) {
    sum.withdrawals += line.withdrawals
    sum.givenBack += line.givenBack
    sum.memberFees += line.memberFees
    sum.memberFeesGivenBack += line.memberFeesGivenBack
    sum.employerFees += line.employerFees
    sum.employerFeesGivenBack += line.employerFeesGivenBack
  }
  return sum
}

/** The fees of some days by day, tier and currency, in this order. */
export async function listLines(db: Reader, { partnerId, from, to }: Span): Promise<FeeLine[]> {
  const fees = feesByDay({
    ofWithdrawals: sql`w.partner_id = ${partnerId} and w.id >= ${firstId('withdrawal', from)} and w.id < ${firstId('withdrawal', to)}`,
    ofTransfers: sql`t.partner_id = ${partnerId} and t.id >= ${firstId('transfer', from)} and t.id < ${firstId('transfer', to)}`,
  })
  const { rows } = await sql<FeeLine>`
    select day::text, tier, currency, withdrawals, given_back, member_fees, member_fees_given_back, employer_fees,
           employer_fees_given_back
      from (${fees}) f order by day, tier, currency`.execute(db)
  return rows
}

type FeeRows = { ofWithdrawals: RawBuilder<unknown>; ofTransfers: RawBuilder<unknown> }

/**
 * SQL for fees by partner, day (by the partner's time zone), tier and currency: charges from the withdrawals, and their later changes
 * from the books.
 * @param ofWithdrawals which withdrawals `w`
 * @param ofTransfers which transfers `t`
 */
export function feesByDay({ ofWithdrawals, ofTransfers }: FeeRows) {
  return sql`
    select partner_id, day, tier, currency,
           count(distinct movement_id) filter (where not is_back)::integer as withdrawals,
           count(distinct movement_id) filter (where is_back)::integer as given_back,
           coalesce(sum(member_fee) filter (where not is_back), 0)::bigint as member_fees,
           coalesce(sum(member_fee) filter (where is_back), 0)::bigint as member_fees_given_back,
           coalesce(sum(employer_fee) filter (where not is_back), 0)::bigint as employer_fees,
           coalesce(sum(employer_fee) filter (where is_back), 0)::bigint as employer_fees_given_back
      from (select w.partner_id, w.id as movement_id, (w.created_at at time zone p.time_zone)::date as day, i.tier, w.currency,
                   w.fee as member_fee, w.employer_fee, false as is_back
              from withdrawals w
              join withdrawal_intents i on i.partner_id = w.partner_id and i.id = w.withdrawal_intent_id
              join partners p on p.id = w.partner_id
             where (w.fee > 0 or w.employer_fee > 0) and ${ofWithdrawals}
             union all
            select t.partner_id, t.movement_id, (t.created_at at time zone p.time_zone)::date, i.tier, t.currency,
                   case when 'partner_fees' in (t.debit, t.credit) then 0 else t.amount end,
                   case when 'partner_fees' in (t.debit, t.credit) then t.amount else 0 end,
                   t.debit = 'fees'
              from ledger_transfers t
              join withdrawals w on w.partner_id = t.partner_id and w.id = t.movement_id
              join withdrawal_intents i on i.partner_id = w.partner_id and i.id = w.withdrawal_intent_id
              join partners p on p.id = w.partner_id
             where ${changesFees}
               and 'revenue' not in (t.debit, t.credit) and ${ofTransfers}) each_fee
     group by partner_id, day, tier, currency`
}
