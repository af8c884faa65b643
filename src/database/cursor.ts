import { type Problem, problem } from '../kernel/errors.ts'
import { type Reader, sql } from './database.ts'

/** Where a page begins in a list that is newest first: older entries come after the one with this id, newer ones before it. */
export type Cursor = { side: 'after' | 'before'; id: string }

/** A cursor, and when its entry was created. */
export type Position = Cursor & { createdAt: Date }

/**
 * Finds the entry of a cursor. It need not match the filter of the list.
 * @throws Problem `NotFound` if there is none, also for another partner's
 */
export async function locate(
  db: Reader,
  table: 'withdrawals' | 'pay_runs',
  { partnerId, cursor }: { partnerId: string; cursor: Cursor | undefined },
): Promise<Position | undefined> {
  if (cursor === undefined) return undefined
  const { rows } = await sql<{ createdAt: Date }>`
    select created_at from ${sql.table(table)} where partner_id = ${partnerId} and id = ${cursor.id}`.execute(db)
  const [found] = rows
  if (found === undefined) throw unknownCursor(cursor)
  return { ...cursor, ...found }
}

/**
 * Checks that the entry of a cursor is the partner's, in a list whose order the id alone gives. It need not match the filter of
 * the list, and may have been deleted from it.
 * @throws Problem `NotFound` if there is none, also for another partner's
 */
export async function requireKnown(
  db: Reader,
  table: 'members' | 'webhook_endpoints' | 'member_jobs' | 'request_log',
  { partnerId, cursor }: { partnerId: string; cursor: Cursor | undefined },
): Promise<void> {
  if (cursor === undefined) return
  const { rows } = await sql`
    select from ${sql.table(table)} where partner_id = ${partnerId} and id = ${cursor.id}`.execute(db)
  if (rows.length === 0) throw unknownCursor(cursor)
}

export function unknownCursor({ side }: Cursor): Problem {
  return problem('NotFound', `There is no entry with the id in ${side}; start again without ${side}`)
}

/** SQL condition: a row of a list by `(created_at, id)` is on the cursor's side of it. */
export function isBeyond({ side, createdAt, id }: Position) {
  const order = sql.raw(side === 'after' ? '<' : '>')
  return sql<boolean>`(created_at, id) ${order} (${createdAt}, ${id})`
}

/** Like `isBeyond`, for a list by `id`. */
export function isBeyondId({ side, id }: Cursor) {
  return side === 'after' ? sql<boolean>`id < ${id}` : sql<boolean>`id > ${id}`
}

/** The order in which rows are read: those nearest to the cursor first. */
export function readingOrder(cursor: Cursor | undefined): 'asc' | 'desc' {
  return cursor?.side === 'before' ? 'asc' : 'desc'
}

/** Puts the rows that were read into the order of the list. */
export function newestFirst<Row>(rows: Row[], cursor: Cursor | undefined): Row[] {
  return cursor?.side === 'before' ? rows.toReversed() : rows
}
