import type { BankAccount } from '../bank-accounts/rules.ts'
import { openAccount, type StoredAccount } from '../bank-accounts/sealed-account.ts'
import { cachedSql } from '../database/cached-sql.ts'
import { type Reader, sql } from '../database/database.ts'
import { onOnePartner } from '../database/one-partner.ts'
import type { Currency } from '../kernel/money.ts'
import * as ledger from '../ledger/ledger.ts'
import type { Restrictions } from '../members/restrictions.ts'
import { sealerOf } from '../sealing/held.ts'
import type { Tier } from '../tiers/rules.ts'
import { deductedStatuses } from './lifecycle.ts'
import type { Facts, MemberFacts } from './rules.ts'

/** Names a member of a partner, and the instant as of which the facts are read. */
export type FactsQuery = { partnerId: string; memberId: string; now: Date }

type FactsRow = StoredAccount &
  Restrictions &
  Omit<Tier, 'name'> & {
    place: number
    paused: boolean
    floor: bigint | null
    isAlerted: boolean
    payCycleId: string | null
    memberId: string | null
    status: MemberFacts['status']
    tier: string
    available: bigint
  }

/** Whether a bank that pays this currency is connected, by the settings of this process. */
export type HasRail = (currency: Currency) => boolean

/** The banks that pay, by the settings of this process. */
export type Banks = {
  hasRail: HasRail
  /** Why the bank that pays a currency cannot pay to an account; undefined if it can, or by default. */
  accountRefusal?: ((currency: Currency, account: BankAccount) => string | undefined) | undefined
}

/**
 * Reads everything that decides withdrawals: one statement for all commands, and one more each for floats with a floor and for
 * tiers that limit the number of withdrawals. Always reading them would cost a command that needs neither half as much again.
 *
 * If the caller holds a member's lock, the member's figures stay the same between the statements. The open pay cycle may end in
 * between, so they all use the one that the first statement found.
 * @returns the facts of each command, in order
 */
export async function readFacts<A extends FactsQuery>(
  db: Reader,
  asked: A[],
  { hasRail, accountRefusal }: Banks,
): Promise<(A & { facts: Facts })[]> {
  const { rows } = await cachedSql<FactsRow>`
    select a.place::integer, p.paused, l.floor, l.low_since is not null as "isAlerted",
           c.id as "payCycleId",
           m.id as "memberId", m.status, m.account, k.payment_key as "paymentKey",
           m.account_refused as "accountRefused", m.review_reason as "reviewReason",
           t.name as tier, t.version, t.currency, v.fee_fixed as "feeFixed", v.fee_bps as "feeBps", v.fee_min as "feeMin",
           v.fee_max as "feeMax", v.fee_payer as "feePayer", v.lower_limit as "lowerLimit", v.upper_limit as "upperLimit",
           v.withdrawals_per_day as "withdrawalsPerDay", v.withdrawals_per_cycle as "withdrawalsPerCycle",
           v.payout_speed as "payoutSpeed",
           -- Pay of an ended cycle is about to be released.
           case when b.pay_cycle_id = c.id then b.available else 0 end as available
      from unnest(
             ${asked.map(each => each.partnerId)}::text[], ${asked.map(each => each.memberId)}::text[])
             with ordinality as a (partner_id, member_id, place)
      join partners p on p.id = a.partner_id
      left join pay_cycles c on c.partner_id = p.id and c.status = 'Open' ${onOnePartner('c', asked)}
      left join members m on m.partner_id = p.id and m.id = a.member_id and m.erased_at is null ${onOnePartner('m', asked)}
      left join member_keys k on k.partner_id = p.id and k.member_id = m.id ${onOnePartner('k', asked)}
      left join tiers t on t.partner_id = p.id and t.name = m.tier ${onOnePartner('t', asked)}
      left join tier_versions v on v.partner_id = p.id and v.tier = t.name and v.version = t.version ${onOnePartner('v', asked)}
      left join float_limits l on l.partner_id = p.id and l.currency = t.currency ${onOnePartner('l', asked)}
      left join ledger_balances b on b.partner_id = p.id and b.member_id = m.id and b.currency = t.currency ${onOnePartner('b', asked)}`.execute(
    db,
  )
  const known = new Map(rows.map(row => [asked[row.place - 1], row]))
  const sealer = sealerOf(db)
  const accountOf = (row: FactsRow, { partnerId, memberId }: A) => openAccount(sealer, row, { partnerId, memberId })
  const rowOf = (each: A) => {
    const row = known.get(each)
    if (row === undefined) throw new Error('The partner does not exist')
    return row
  }
  const [free, counts] = await Promise.all([
    readFreeFloats(db, { asked, rowOf }),
    countWithdrawals(db, { asked, rowOf }),
  ])
  return asked.map(each => {
    const row = rowOf(each)
    // Without a member there is no currency, and that refusal comes first.
    const canPay = row.memberId === null || hasRail(row.currency)
    return {
      ...each,
      facts: toFacts(row, {
        ...{ hasRail: canPay, accountRefusal, account: accountOf(row, each) },
        ...{ free: free.get(floatOf(each, row)), count: counts.get(each) },
      }),
    }
  })
}

const floatOf = ({ partnerId }: FactsQuery, { currency }: FactsRow) => `${partnerId} ${currency}`

const ofLimited = { partnerId: sql`limited.partner_id`, currency: sql`limited.currency` }

/** The free amount of each float that has a floor, once for all commands. */
async function readFreeFloats<A extends FactsQuery>(
  db: Reader,
  { asked, rowOf }: { asked: A[]; rowOf: (each: A) => FactsRow },
): Promise<Map<string, bigint>> {
  const watched = asked.filter(each => rowOf(each).floor !== null)
  if (watched.length === 0) return new Map()
  const floats = new Map(
    watched.map(each => [floatOf(each, rowOf(each)), { partnerId: each.partnerId, currency: rowOf(each).currency }]),
  )
  const limited = [...floats.values()]
  const { rows } = await cachedSql<{ partnerId: string; currency: string; free: bigint }>`
    select limited.partner_id, limited.currency, s.float - s.pending as free
      from unnest(${limited.map(each => each.partnerId)}::text[], ${limited.map(each => each.currency)}::text[])
             as limited (partner_id, currency)
     cross join lateral (${ledger.floatSums({ ...ofLimited, rows: limited })}) s`.execute(db)
  return new Map(rows.map(({ partnerId, currency, free }) => [`${partnerId} ${currency}`, free]))
}

type Count = { today: number; inCycle: number }

const isDeducted = sql`w.status in (${sql.join(deductedStatuses.map(status => sql.lit(status)))})`

/** Counts the withdrawals that were not refunded, of members whose tier limits their number, and no further than the limit. */
async function countWithdrawals<A extends FactsQuery>(
  db: Reader,
  { asked, rowOf }: { asked: A[]; rowOf: (each: A) => FactsRow },
): Promise<Map<A, Count>> {
  const limited = asked.filter(each => {
    const { memberId, withdrawalsPerDay, withdrawalsPerCycle } = rowOf(each)
    return memberId !== null && (withdrawalsPerDay !== null || withdrawalsPerCycle !== null)
  })
  if (limited.length === 0) return new Map()
  const { rows } = await cachedSql<Count & { place: number }>`
    select a.place::integer,
           case when a.per_day is null then 0 else (
             select count(*)::integer from (
               select from withdrawals w
                where w.partner_id = p.id ${onOnePartner('w', limited)} and w.member_id = a.member_id and ${isDeducted}
                  and w.id >= first_id('w', date_trunc('day', a.now at time zone p.time_zone) at time zone p.time_zone)
                order by w.id desc limit a.per_day) today
           ) end as today,
           case when a.per_cycle is null then 0 else (
             select count(*)::integer from (
               select from withdrawals w
                where w.partner_id = p.id ${onOnePartner('w', limited)} and w.member_id = a.member_id and ${isDeducted}
                  -- Clocks are less than an hour apart: an older withdrawal is of an earlier cycle.
                  and w.pay_cycle_id = c.id and w.id >= first_id('w', c.created_at - interval '1 hour')
                order by w.id desc limit a.per_cycle) in_cycle
           ) end as in_cycle
      from unnest(
             ${limited.map(each => each.partnerId)}::text[], ${limited.map(each => each.memberId)}::text[],
             ${limited.map(each => each.now.toISOString())}::timestamptz[],
             ${limited.map(each => rowOf(each).withdrawalsPerDay)}::integer[],
             ${limited.map(each => rowOf(each).withdrawalsPerCycle)}::integer[],
             ${limited.map(each => rowOf(each).payCycleId)}::text[])
             with ordinality as a (partner_id, member_id, now, per_day, per_cycle, pay_cycle_id, place)
      join partners p on p.id = a.partner_id
      left join pay_cycles c on c.partner_id = p.id and c.id = a.pay_cycle_id ${onOnePartner('c', limited)}`.execute(db)
  const counts = new Map<A, Count>()
  for (const { place, ...count } of rows) {
    const each = limited[place - 1]
    if (each !== undefined) counts.set(each, count)
  }
  return counts
}

// Field by field: this runs for every withdrawal, and copying the rest of a row costs as much as everything else here.
type FactsBeside = {
  hasRail: boolean
  accountRefusal: Banks['accountRefusal']
  account: BankAccount | null
  free: bigint | undefined
  count: Count | undefined
}

function toFacts(row: FactsRow, { hasRail, accountRefusal, account, free, count }: FactsBeside): Facts {
  const { paused, floor, payCycleId } = row
  const float = floor === null || free === undefined ? null : { floor, free, isAlerted: row.isAlerted }
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
    payoutSpeed: row.payoutSpeed,
  }
  const member: MemberFacts = {
    id: row.memberId,
    status: row.status,
    account,
    sealedAccount: row.account,
    accountRefusal: account === null ? undefined : accountRefusal?.(row.currency, account),
    accountRefused: row.accountRefused,
    reviewReason: row.reviewReason,
    tier,
    available: row.available,
    withdrawalsToday: count?.today ?? 0,
    withdrawalsThisCycle: count?.inCycle ?? 0,
  }
  return { hasRail, paused, float, payCycleId, member }
}
