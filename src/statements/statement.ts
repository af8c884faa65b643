import { type Cursor, newestFirst, readingOrder, unknownCursor } from '../database/cursor.ts'
import { type Page, type Reader, sql } from '../database/database.ts'
import { plannedOnce } from '../database/lease.ts'
import type { Currency } from '../kernel/money.ts'
import { detachedBalance, detachedUntil, requireAttached } from '../ledger/detached.ts'

/** The amount that a member can withdraw, and the amount that a correction took beyond it; in minor units. */
type MemberBalance = { available: bigint; owed: bigint }

/** One transfer of a member and the change it made to their balance; both changes are signed. */
export type StatementLine = {
  id: string
  /** The pay run, withdrawal or pay cycle that caused it. */
  movementId: string
  reason: string
  createdAt: Date
  change: MemberBalance
  balanceAfter: MemberBalance
}

type Account = { partnerId: string; memberId: string; currency: Currency }

/** The currencies in which a member has ever had a balance. */
export async function listCurrencies(
  db: Reader,
  { partnerId, memberId }: Omit<Account, 'currency'>,
): Promise<Currency[]> {
  const { rows } = await sql<{ currency: Currency }>`
    select currency from ledger_balances where partner_id = ${partnerId} and member_id = ${memberId} order by currency`.execute(
    db,
  )
  return rows.map(({ currency }) => currency)
}

type CycleSum = {
  payCycleId: string
  startDate: string
  endDate: string
  currency: Currency
  reason: string
  available: bigint
  owed: bigint
}

/** How much a member's balances changed in each pay cycle, by reason, oldest first. Leaves out cycles with detached transfers. */
export async function listCycleSums(
  db: Reader,
  { partnerId, memberId }: Omit<Account, 'currency'>,
): Promise<CycleSum[]> {
  const wholeSince = (await detachedUntil(db)) ?? new Date(0)
  const { rows } = await sql<CycleSum>`
    select c.id as pay_cycle_id, c.start_date, c.end_date, t.currency, t.reason,
           sum(case when t.credit = 'member_available' then t.amount when t.debit = 'member_available' then -t.amount else 0 end)::bigint as available,
           sum(case when t.debit = 'member_owed' then t.amount when t.credit = 'member_owed' then -t.amount else 0 end)::bigint as owed
      from ledger_transfers t
      join pay_cycles c on c.partner_id = t.partner_id and c.id = t.pay_cycle_id
     where t.partner_id = ${partnerId} and t.member_id = ${memberId} and c.created_at >= ${wholeSince}
       and (t.debit in ('member_available', 'member_owed') or t.credit in ('member_available', 'member_owed'))
     group by c.id, c.start_date, c.end_date, t.currency, t.reason
     order by c.start_date, t.currency, t.reason`.execute(db)
  return rows
}

/** One page of a member's statement: `opening` plus the lines, oldest (last) to newest, gives `closing`. */
export type Statement = { opening: MemberBalance; closing: MemberBalance; lines: StatementLine[]; hasMore: boolean }

type StatementAsked = Account & { asOf: Date; movementId?: string; page: Page; cursor?: Cursor | undefined }

/**
 * Reads a member's statement in a currency up to an instant, newest line first.
 *
 * Lines are in booking order, the order in which the member's lock was held, so every balance after a line really existed. A
 * line has the time of the request that caused it, and concurrent requests may be booked slightly out of that order. So the
 * statement ends with the last line at or before the instant, and includes every line before that one.
 *
 * Reads backwards from the newest line, because the stored balance is the newest. The oldest line is the first whose transfer is not
 * detached; `opening` is what the member had before it.
 * @param asOf inclusive
 * @param movementId only the lines of this pay run, withdrawal or pay cycle
 * @throws Problem `NotFound` if the cursor is not a line of this statement; `QueryValidation` if all lines until then are detached
 */
export async function readStatement(
  db: Reader,
  { asOf, movementId, page, cursor, ...account }: StatementAsked,
): Promise<Statement> {
  const { partnerId, memberId, currency } = account
  const beyond = cursor === undefined ? sql`` : await beyondSql(db, { ...account, cursor })
  const order = sql.raw(readingOrder(cursor))
  const { rows } = await sql<LineRow>`${plannedOnce}
    with booked as (
      select t.id, t.movement_id, t.reason, t.created_at, t.member_sequence,
             case when t.credit = 'member_available' then t.amount when t.debit = 'member_available' then -t.amount else 0 end as available,
             case when t.debit = 'member_owed' then t.amount when t.credit = 'member_owed' then -t.amount else 0 end as owed
        from ledger_transfers t
       where t.partner_id = ${partnerId} and t.member_id = ${memberId} and t.currency = ${currency}
         and (t.debit in ('member_available', 'member_owed') or t.credit in ('member_available', 'member_owed'))
    ), balanced as (
      select booked.*,
             (b.available - coalesce(sum(booked.available) over newer, 0))::bigint as available_after,
             (b.owed - coalesce(sum(booked.owed) over newer, 0))::bigint as owed_after
        from booked
        join ledger_balances b on b.partner_id = ${partnerId} and b.member_id = ${memberId} and b.currency = ${currency}
      window newer as (order by member_sequence desc rows between unbounded preceding and 1 preceding)
    )
    select id, movement_id, reason, created_at, available, owed, available_after, owed_after
      from balanced
     where member_sequence <= (select max(member_sequence) from booked where created_at <= ${asOf})
           ${beyond} ${movementId === undefined ? sql`` : sql`and movement_id = ${movementId}`}
     order by member_sequence ${order}
    offset ${page.skip} limit ${page.take + 1}`.execute(db)
  const lines = newestFirst(rows.slice(0, page.take), cursor).map(toLine)
  const [newest, oldest] = [lines[0], lines.at(-1)]
  if (newest === undefined || oldest === undefined) {
    if (movementId === undefined) await requireAttached(db, asOf, { path: 'asOf' })
    const balance = await detachedBalance(db, account)
    return { opening: balance, closing: balance, lines, hasMore: false }
  }
  return {
    opening: before(oldest),
    closing: newest.balanceAfter,
    lines,
    hasMore: rows.length > page.take,
  }
}

async function beyondSql(db: Reader, { partnerId, memberId, currency, cursor }: Account & { cursor: Cursor }) {
  const { rows } = await sql<{ memberSequence: bigint }>`
    select member_sequence from ledger_transfers
     where partner_id = ${partnerId} and id = ${cursor.id} and member_id = ${memberId} and currency = ${currency}
       and member_sequence is not null`.execute(db)
  const [found] = rows
  if (found === undefined) throw unknownCursor(cursor)
  return cursor.side === 'after'
    ? sql`and member_sequence < ${found.memberSequence}`
    : sql`and member_sequence > ${found.memberSequence}`
}

type LineRow = Pick<StatementLine, 'id' | 'movementId' | 'reason' | 'createdAt'> &
  MemberBalance & { availableAfter: bigint; owedAfter: bigint }

function toLine({ availableAfter, owedAfter, available, owed, ...line }: LineRow): StatementLine {
  return { ...line, change: { available, owed }, balanceAfter: { available: availableAfter, owed: owedAfter } }
}

function before({ change, balanceAfter: { available, owed } }: StatementLine): MemberBalance {
  return { available: available - change.available, owed: owed - change.owed }
}
