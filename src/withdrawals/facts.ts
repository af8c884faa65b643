import { type AccountColumns, fromColumns } from '../bank-accounts/rules.ts'
import { type Reader, sql } from '../db.ts'
import * as ledger from '../ledger/ledger.ts'
import type { Tier } from '../tiers/rules.ts'
import { type Facts, type MemberFacts, unavailability } from './rules.ts'

type Row = AccountColumns &
  Omit<Tier, 'name'> & {
    paused: boolean
    floor: bigint | null
    free: bigint | null
    isNotedLow: boolean
    payCycleId: string | null
    memberId: string | null
    status: MemberFacts['status']
    tier: string
    available: bigint
    withdrawalsToday: number
    withdrawalsThisCycle: number
  }

/** Reads, in one statement, everything that a withdrawal of this member is decided by. */
export async function readFacts(
  db: Reader,
  { partnerId, memberId, now }: { partnerId: string; memberId: string; now: Date },
): Promise<Facts> {
  const sums = ledger.floatSums({ partnerId: sql`p.id`, currency: sql`f.currency` })
  const { rows } = await sql<Row>`
    select p.paused, f.floor, f.low_since is not null as is_noted_low,
           -- Summed only where somebody watches.
           case when f.floor is not null then (select s.float - s.pending from (${sums}) s) end as free,
           c.id as pay_cycle_id,
           m.id as member_id, m.status, m.account_holder, m.sort_code, m.account_number, m.iban,
           t.name as tier, t.version, t.currency, v.fee_fixed, v.fee_bps, v.fee_min, v.fee_max, v.fee_payer,
           v.lower_limit, v.upper_limit, v.withdrawals_per_day, v.withdrawals_per_cycle,
           coalesce(b.available, 0) as available,
           -- Counted only for tiers that limit the number.
           case when v.withdrawals_per_day is null then 0 else (
             select count(*)::integer from withdrawals w
              where w.partner_id = p.id and w.member_id = m.id and w.status in ('held', 'submitted', 'paid')
                and w.created_at >= date_trunc('day', ${now}::timestamptz at time zone p.time_zone) at time zone p.time_zone
           ) end as withdrawals_today,
           case when v.withdrawals_per_cycle is null then 0 else (
             select count(*)::integer from withdrawals w
              where w.partner_id = p.id and w.member_id = m.id and w.status in ('held', 'submitted', 'paid')
                and w.pay_cycle_id = c.id
           ) end as withdrawals_this_cycle
      from partners p
      left join pay_cycles c on c.partner_id = p.id and c.status = 'Open'
      left join members m on m.partner_id = p.id and m.id = ${memberId}
      left join tiers t on t.partner_id = p.id and t.name = m.tier
      left join tier_versions v on v.partner_id = p.id and v.tier = t.name and v.version = t.version
      left join float_limits f on f.partner_id = p.id and f.currency = t.currency
      left join ledger_balances b on b.partner_id = p.id and b.member_id = m.id and b.currency = t.currency
     where p.id = ${partnerId}`.execute(db)
  const row = rows[0]
  if (row === undefined) throw new Error(`Partner ${partnerId} is gone`)
  const { paused, floor, free, isNotedLow, payCycleId, memberId: id, status, available, ...others } = row
  const float = floor === null || free === null ? null : { floor, free, isNotedLow }
  const partner = { unavailable: unavailability({ paused, float }), float, payCycleId }
  if (id === null) return { ...partner, member: null }
  const { withdrawalsToday, withdrawalsThisCycle, ...rest } = others
  const { accountHolder, sortCode, accountNumber, iban, tier: name, ...terms } = rest
  const account = fromColumns({ accountHolder, sortCode, accountNumber, iban })
  const tier = { name, ...terms }
  return {
    ...partner,
    member: { id, status, account, tier, available, withdrawalsToday, withdrawalsThisCycle },
  }
}
