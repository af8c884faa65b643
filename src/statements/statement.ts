import { type Page, type Reader, sql } from '../database/database.ts'
import type { Currency } from '../money.ts'

/** What a member can withdraw, and what a correction took beyond what was there; in minor units. */
export type MemberBalance = { available: bigint; owed: bigint }

/** One transfer of a member's, as it changed their standing; both changes are signed. */
export type StatementLine = {
  id: string
  /** What it is about: a pay run, a withdrawal, a pay cycle. */
  movementId: string
  reason: string
  createdAt: Date
  change: MemberBalance
  after: MemberBalance
}

/** One page of a member's books. Its figures follow from one another: `opening`, the lines from the last to the first, `closing`. */
export type Statement = { opening: MemberBalance; closing: MemberBalance; lines: StatementLine[]; hasMore: boolean }

/**
 * What was booked for a member in a currency up to an instant, newest first.
 *
 * Lines are in the order in which they were booked, which is the order of the member's lock, so that no balance after a line is
 * one that never was. A line carries the instant of the request that caused it, and requests that wait for each other may be
 * booked a moment out of that order: the statement as of an instant ends with the last line of that instant or an earlier one,
 * and holds every line before it.
 *
 * Reads from the newest line down to the end of the page, since the balance that is kept is the newest.
 * @param asOf inclusive
 */
export async function readStatement(
  db: Reader,
  {
    partnerId,
    memberId,
    currency,
    asOf,
    page,
  }: { partnerId: string; memberId: string; currency: Currency; asOf: Date; page: Page },
): Promise<Statement> {
  const { rows } = await sql<Row>`
    with booked as (
      select t.id, t.movement_id, t.reason, t.created_at, t.member_sequence,
             case when t.credit = 'member_available' then t.amount when t.debit = 'member_available' then -t.amount else 0 end as available,
             case when t.debit = 'member_owed' then t.amount when t.credit = 'member_owed' then -t.amount else 0 end as owed
        from ledger_transfers t
       where t.partner_id = ${partnerId} and t.member_id = ${memberId} and t.currency = ${currency}
         and (t.debit in ('member_available', 'member_owed') or t.credit in ('member_available', 'member_owed'))
    ), standing as (
      select booked.*,
             (b.available - coalesce(sum(booked.available) over newer, 0))::bigint as available_after,
             (b.owed - coalesce(sum(booked.owed) over newer, 0))::bigint as owed_after
        from booked
        join ledger_balances b on b.partner_id = ${partnerId} and b.member_id = ${memberId} and b.currency = ${currency}
      window newer as (order by member_sequence desc rows between unbounded preceding and 1 preceding)
    )
    select id, movement_id, reason, created_at, available, owed, available_after, owed_after
      from standing
     where member_sequence <= (select max(member_sequence) from booked where created_at <= ${asOf})
     order by member_sequence desc
    offset ${page.skip} limit ${page.take + 1}`.execute(db)
  const lines = rows.slice(0, page.take).map(toLine)
  const [newest, oldest] = [lines[0], lines.at(-1)]
  return {
    opening: oldest === undefined ? nothing : before(oldest),
    closing: newest === undefined ? nothing : newest.after,
    lines,
    hasMore: rows.length > page.take,
  }
}

const nothing: MemberBalance = { available: 0n, owed: 0n }

type Row = Pick<StatementLine, 'id' | 'movementId' | 'reason' | 'createdAt'> &
  MemberBalance & { availableAfter: bigint; owedAfter: bigint }

function toLine({ availableAfter, owedAfter, available, owed, ...line }: Row): StatementLine {
  return { ...line, change: { available, owed }, after: { available: availableAfter, owed: owedAfter } }
}

function before({ change, after }: StatementLine): MemberBalance {
  return { available: after.available - change.available, owed: after.owed - change.owed }
}
