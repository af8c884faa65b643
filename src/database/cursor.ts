import { type Problem, problem } from '../kernel/errors.ts'
import { type Reader, sql } from './database.ts'

/** Where a page begins in a newest-first list: older entries come after the entry with this id, newer entries before it. */
export type Cursor = { side: 'after' | 'before'; id: string }

/**
 * Checks that the entry of a cursor belongs to the partner. The entry need not match the filter of the list, and may be marked as
 * deleted.
 * @throws Problem `NotFound` if the partner has no such entry
 */
export async function requireKnown(
  db: Reader,
  table: 'members' | 'withdrawals' | 'pay_runs' | 'webhook_endpoints' | 'member_imports' | 'request_log',
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

/** SQL condition: the row is on the cursor's side. Lists are ordered by `id`, which begins with the time of creation. */
export function isBeyond({ side, id }: Cursor) {
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
