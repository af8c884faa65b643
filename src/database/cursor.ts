import { type Problem, problem } from '../kernel/errors.ts'
import { type Reader, sql } from './database.ts'

/** Where a page begins in a newest-first list: older entries come after the entry with this id, newer entries before it. */
export type Cursor = { side: 'after' | 'before'; id: string }

/** A cursor, and when its entry was created. */
export type Position = Cursor & { createdAt: Date }

/**
 * Finds the entry of a cursor. The entry need not match the filter of the list.
 * @throws Problem `NotFound` if the partner has no such entry
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
 * Checks that the entry of a cursor belongs to the partner, in a list ordered by id. The entry need not match the filter of the
 * list, and may be marked as deleted.
 * @throws Problem `NotFound` if the partner has no such entry
 */
export async function requireKnown(
  db: Reader,
  table: 'members' | 'webhook_endpoints' | 'member_imports' | 'request_log',
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

/** SQL condition: the row is on the cursor's side, in a list ordered by `(created_at, id)`. */
export function isBeyond({ side, createdAt, id }: Position) {
  const order = sql.raw(side === 'after' ? '<' : '>')
  return sql<boolean>`(created_at, id) ${order} (${createdAt}, ${id})`
}

/** Like `isBeyond`, for a list ordered by `id`. */
export function isBeyondId({ side, id }: Cursor) {
  return side === 'after' ? sql<boolean>`id < ${id}` : sql<boolean>`id > ${id}`
}

/** The order in which rows are read: nearest to the cursor first. */
export function readingOrder(cursor: Cursor | undefined): 'asc' | 'desc' {
  return cursor?.side === 'before' ? 'asc' : 'desc'
}

/** Puts the rows that were read into the order of the list. */
export function newestFirst<Row>(rows: Row[], cursor: Cursor | undefined): Row[] {
  return cursor?.side === 'before' ? rows.toReversed() : rows
}
