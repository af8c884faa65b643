import { type AccountColumns, fromColumns } from '../bank-accounts/rules.ts'
import { cachedSql } from '../database/cached-sql.ts'
import { type Reader, sql } from '../database/database.ts'
import * as ledger from '../ledger/ledger.ts'
import type { Tier } from '../tiers/rules.ts'
import type { Facts, MemberFacts } from './rules.ts'

/** Which member, of which partner, and as of when. */
export type Asked = { partnerId: string; memberId: string; now: Date }

type Row = AccountColumns &
  Omit<Tier, 'name'> & {
    paused: boolean
    floor: bigint | null
    free: bigint | null
    isNotedLow: boolean | null
    payCycleId: string | null
    memberId: string | null
    status: MemberFacts['status']
    tier: string
    available: bigint
    withdrawalsToday: number
    withdrawalsThisCycle: number
  }

const floatSums = ledger.floatSums({ partnerId: sql`l.partner_id`, currency: sql`l.currency` })

/**
 * Reads, in one statement, everything that withdrawals are decided by.
 * @param hasRail as the settings of this process say
 * @returns what was asked, in its order, each with its facts
 */
export async function readFacts<A extends Asked>(
  db: Reader,
  asked: A[],
  { hasRail }: { hasRail: boolean },
): Promise<(A & { facts: Facts })[]> {
  const { rows } = await cachedSql<Row>`
    with asked as (
      select * from unnest(
        ${asked.map(each => each.partnerId)}::text[], ${asked.map(each => each.memberId)}::text[],
        ${asked.map(each => each.now.toISOString())}::timestamptz[])
          with ordinality as a (partner_id, member_id, now, place)
    ), floats as materialized (
      -- Summed only where somebody watches, and once for all who ask.
      select l.partner_id, l.currency, l.floor, l.low_since is not null as is_noted_low, s.float - s.pending as free
        from (select distinct partner_id from asked) p
        join float_limits l on l.partner_id = p.partner_id
       cross join lateral (${floatSums}) s
    )
    select p.paused, f.floor, f.is_noted_low, f.free,
           c.id as pay_cycle_id,
           m.id as member_id, m.status, m.account_holder, m.sort_code, m.account_number, m.iban,
           t.name as tier, t.version, t.currency, v.fee_fixed, v.fee_bps, v.fee_min, v.fee_max, v.fee_payer,
           v.lower_limit, v.upper_limit, v.withdrawals_per_day, v.withdrawals_per_cycle,
           coalesce(b.available, 0) as available,
           -- Counted only for tiers that limit the number, and no further than the limit.
           case when v.withdrawals_per_day is null then 0 else (
             select count(*)::integer from (
               select from withdrawals w
                where w.partner_id = p.id and w.member_id = m.id and w.status in ('held', 'submitted', 'paid')
                  and w.created_at >= date_trunc('day', a.now at time zone p.time_zone) at time zone p.time_zone
                order by w.created_at desc, w.id desc limit v.withdrawals_per_day) today
           ) end as withdrawals_today,
           case when v.withdrawals_per_cycle is null then 0 else (
             select count(*)::integer from (
               select from withdrawals w
                where w.partner_id = p.id and w.member_id = m.id and w.status in ('held', 'submitted', 'paid')
                  -- The clocks of two processes are less than an hour apart: what is older is of an earlier cycle.
                  and w.pay_cycle_id = c.id and w.created_at >= c.created_at - interval '1 hour'
                order by w.created_at desc, w.id desc limit v.withdrawals_per_cycle) in_cycle
           ) end as withdrawals_this_cycle
      from asked a
      join partners p on p.id = a.partner_id
      left join pay_cycles c on c.partner_id = p.id and c.status = 'Open'
      left join members m on m.partner_id = p.id and m.id = a.member_id
      left join tiers t on t.partner_id = p.id and t.name = m.tier
      left join tier_versions v on v.partner_id = p.id and v.tier = t.name and v.version = t.version
      left join floats f on f.partner_id = p.id and f.currency = t.currency
      left join ledger_balances b on b.partner_id = p.id and b.member_id = m.id and b.currency = t.currency
     order by a.place`.execute(db)
  return asked.map((each, index) => ({ ...each, facts: toFacts(rows[index], hasRail) }))
}

// Field by field: this runs for every withdrawal, and copying the rest of a row costs as much as all else here.
function toFacts(row: Row | undefined, hasRail: boolean): Facts {
  if (row === undefined) throw new Error('A partner is gone')
  const { paused, floor, free, payCycleId } = row
  const float = floor === null || free === null ? null : { floor, free, isNotedLow: row.isNotedLow === true }
  if (row.memberId === null) return { hasRail, paused, float, payCycleId, member: null }
  const tier: Tier = {
    name: row.tier,
    version: row.version,
    currency: row.currency,
    feeFixed: row.feeFixed,
    feeBps: row.feeBps,
    feeMin: row.feeMin,
    feeMax: row.feeMax,
    feePayer: row.feePayer,
    lowerLimit: row.lowerLimit,
    upperLimit: row.upperLimit,
    withdrawalsPerDay: row.withdrawalsPerDay,
    withdrawalsPerCycle: row.withdrawalsPerCycle,
  }
  const member: MemberFacts = {
    id: row.memberId,
    status: row.status,
    account: fromColumns(row),
    tier,
    available: row.available,
    withdrawalsToday: row.withdrawalsToday,
    withdrawalsThisCycle: row.withdrawalsThisCycle,
  }
  return { hasRail, paused, float, payCycleId, member }
}
