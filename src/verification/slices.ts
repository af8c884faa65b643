import type { RawBuilder } from 'kysely'
import { lanesOf, type Reader, sql } from '../database/database.ts'
import { firstId, type IdKind } from '../kernel/ids.ts'

// Parts of the books that a rule is checked on. Each contains all rows that the rule compares with each other: all of a member, of a
// movement or of a pay cycle.

type Condition = RawBuilder<unknown>

/** Partners, and a time that the ids of their rows begin with. Null: from the beginning, or to the end. */
export type Span = { partnerIds: string[]; from: Date | null; to: Date | null }

/** A row of the pay cycles, withdrawals and so on of a partner. */
export type Key = { partnerId: string; id: string }

/** SQL conditions that choose rows by their partner and an id of a kind. */
export type Choice = (kind: IdKind, partnerId: Condition, id: Condition) => Condition

/** Rows whose id begins with a time. Ids of one kind are a range of each index by partner and id. */
export function inSpan({ partnerIds, from, to }: Span): Choice {
  return (kind, partnerId, id) => {
    const prefix = firstId(kind, new Date(0)).replace(/_.*/, '_')
    const first = from === null ? prefix : firstId(kind, from)
    // No id has the character `~`, which comes after all characters of ids.
    const end = to === null ? `${prefix}~` : firstId(kind, to)
    return sql`(${partnerId} = any(${partnerIds}::text[]) and ${id} >= ${first} and ${id} < ${end})`
  }
}

/** Certain rows of one kind, and none of other kinds. */
export function amongKeys(keysOf: IdKind, keys: Key[]): Choice {
  return (kind, partnerId, id) =>
    kind === keysOf ? sql`((${partnerId}, ${id}) in (select * from ${unnested(keys)}))` : sql`false`
}

/** The withdrawals of certain pay cycles. */
export function withdrawalsOf(cycles: Key[]): Choice {
  return (kind, partnerId, id) =>
    kind === 'withdrawal'
      ? sql`((${partnerId}, ${id}) in (
              select partner_id, id from withdrawals where (partner_id, pay_cycle_id) in (select * from ${unnested(cycles)})))`
      : sql`false`
}

function unnested(keys: Key[]) {
  return sql`unnest(${keys.map(({ partnerId }) => partnerId)}::text[], ${keys.map(({ id }) => id)}::text[])`
}

/** Members with their transfers after their seals. @property balances the condition of a row `b` of `ledger_balances` */
export type Members = { unsealed: Condition; balances: Condition }

// A seal stands for the transfers that it covers, as one row per account. `numbers` counts them once.
const sealsAsTransfers = sql`
  select s.partner_id, s.member_id || ' ' || s.currency as id, s.member_id, s.currency, s.sequence as member_sequence,
         line.debit, line.credit, line.amount, line.pay_cycle_id, line.numbers
    from ledger_member_seals s cross join lateral (values
      ('sealed', 'member_available', s.member_available, s.pay_cycle_id, s.sequence),
      ('sealed', 'member_owed', s.member_owed, null, 0),
      ('sealed', 'carried', s.carried, null, 0)
    ) as line (debit, credit, amount, pay_cycle_id, numbers)`

const columnsOfTransfers = sql`
  t.partner_id, t.id, t.member_id, t.currency, t.member_sequence, t.debit, t.credit, t.amount, t.pay_cycle_id, 1::bigint`

/**
 * Members of some partners in the order of partner and id, after one and up to another. Null: from the first, or to the end, which
 * includes members that do not exist.
 * @property from when the first transfers after their seals were posted; it narrows what is read. Null: reads all
 */
export type MemberRange = { partnerIds: string[]; from: Date | null; after: Key | null; to: Key | null }

export function membersIn({ from, ...range }: MemberRange): Members {
  return {
    unsealed: sql`(
      ${sealsAsTransfers} where ${inMembers('s', range)}
       union all
      select ${columnsOfTransfers}
        from ledger_transfers t
        left join ledger_member_seals s on s.partner_id = t.partner_id and s.member_id = t.member_id and s.currency = t.currency
       where ${inMembers('t', range)} and t.member_id is not null and ${isSince(from)}
         and t.member_sequence > coalesce(s.sequence, 0))`,
    balances: inMembers('b', range),
  }
}

/** The condition of rows of a table with partner and member. */
export function inMembers(row: string, { partnerIds, after, to }: Omit<MemberRange, 'from'>): Condition {
  const [partnerId, memberId] = [sql.ref(`${row}.partner_id`), sql.ref(`${row}.member_id`)]
  // Of one partner, its members are a range of each index by partner and member.
  const [only, ...others] = partnerIds
  const ofPartner = others.length === 0 ? sql`${partnerId} = ${only}` : sql`${partnerId} = any(${partnerIds}::text[])`
  return sql`(${ofPartner}
    ${after === null ? sql`` : sql`and (${partnerId}, ${memberId}) > (${after.partnerId}::text collate "C", ${after.id}::text collate "C")`}
    ${to === null ? sql`` : sql`and (${partnerId}, ${memberId}) <= (${to.partnerId}::text collate "C", ${to.id}::text collate "C")`})`
}

/** The condition of transfers `t` with ids since a time. It spares the partitions of earlier months. */
export function isSince(from: Date | null): Condition {
  return from === null ? sql`true` : sql`t.id >= ${firstId('transfer', from)}`
}

/** The condition of rows `t` of `ledger_transfers`; without times, not a range, so that the whole table can be read in its order. */
export function transfersIn(span: Span): Condition {
  return span.from === null && span.to === null
    ? sql`t.partner_id = any(${span.partnerIds}::text[])`
    : inSpan(span)('transfer', sql`t.partner_id`, sql`t.id`)
}

/**
 * SQL for the transfers `t` that no seal covers. Those of the unfinished withdrawals of a sealed cycle, and those without a member
 * other than payments, are read by index from the beginning: they are few.
 */
export function unsealed(spans: Span[]): Condition {
  const each = spans.map(
    span => sql`
      select ${columnsOfUnsealed}
        from ledger_transfers t
        left join ledger_member_seals s on s.partner_id = t.partner_id and s.member_id = t.member_id and s.currency = t.currency
        left join ledger_seals c on c.partner_id = t.partner_id and c.pay_cycle_id = t.pay_cycle_id and c.sealed_at is not null
       where ${transfersIn(span)}
         and case when t.member_id is not null then t.member_sequence > coalesce(s.sequence, 0)
                  else t.reason = 'withdrawal.paid' and c.partner_id is null end
       union all
      select ${columnsOfUnsealed}
        from ledger_seals c cross join unnest(c.unfinished_withdrawals) as unfinished (id)
        join ledger_transfers t on t.partner_id = c.partner_id and t.movement_id = unfinished.id and t.reason = 'withdrawal.paid'
       where c.partner_id = any(${span.partnerIds}::text[]) and c.sealed_at is not null
       union all
      select ${columnsOfUnsealed} from ledger_transfers t
       where t.partner_id = any(${span.partnerIds}::text[]) and ${isOfPartner}`,
  )
  const none = sql`select ${columnsOfUnsealed} from ledger_transfers t where false`
  return sql`(${sql.join([none, ...each], sql` union all `)})`
}

const columnsOfUnsealed = sql`t.partner_id, t.currency, t.debit, t.credit, t.amount`

/** The condition of the index `ledger_transfers_of_partner`: rows `t` without a member, other than payments. */
export const isOfPartner = sql`t.member_id is null and t.reason <> 'withdrawal.paid'`

/** SQL for the sealed sums by partner, currency and account: of members' transfers at once, of payments once a cycle is sealed. */
export const sealedSums = sql`(
  select m.partner_id, m.currency, m.account, m.debits, m.credits
    from ledger_seal_sums m join ledger_seals c on c.partner_id = m.partner_id and c.pay_cycle_id = m.pay_cycle_id
   where m.part = 'members' or c.sealed_at is not null)`

// On one database, each partner is found by the index. Nodes do not recurse, and each reads the index of its partners.
const partnersOfTransfers = (db: Reader) =>
  lanesOf(db) === 'partner'
    ? sql`select distinct partner_id as id from ledger_transfers`
    : sql`
      select min(partner_id) as id from ledger_transfers
       union all
      select (select min(t.partner_id) from ledger_transfers t where t.partner_id > named.id) from named where named.id is not null`

type UnsealedOf = { partnerId?: string; detachedUntil: Date | null; ignoresTimes?: boolean }

/**
 * The spans of the transfers that no seal covers. Partners whose seals are from the same month are read together. Movements of the time
 * whose transfers are detached are in no span.
 * @param options.ignoresTimes reads everything, so that only the seals decide
 */
export async function unsealedSpans(
  db: Reader,
  { partnerId, detachedUntil, ignoresTimes = false }: UnsealedOf,
): Promise<Span[]> {
  const { rows } = await sql<Omit<Span, 'to'>>`
    with ${lanesOf(db) === 'partner' ? sql`` : sql`recursive`} named as (${partnersOfTransfers(db)}), newest as (
      -- Also partners that do not exist: nothing but a transfer would name them.
      select p.id, greatest(case when not ${ignoresTimes} then max(s.unsealed_from) end, ${detachedUntil}::timestamptz) as unsealed_from
        from (select id from partners union select id from named where id is not null) p
        left join ledger_seals s on s.partner_id = p.id and s.sealed_at is not null
       where ${partnerId ?? null}::text is null or p.id = ${partnerId ?? null}
       group by p.id
    )
    select array_agg(id::text order by id) as partner_ids, min(unsealed_from) as "from"
      from newest group by date_trunc('month', unsealed_from, 'UTC') order by 2 nulls first`.execute(db)
  return rows.map(row => ({ ...row, to: null }))
}
