import type { Reader, Tx } from '../../database/database.ts'

/** How far the reports of a rail have been read; null before the first. */
export async function cursorOf(db: Reader, feed: string): Promise<string | null> {
  const row = await db.selectFrom('railCursors').select('cursor').where('rail', '=', feed).executeTakeFirst()
  return row?.cursor ?? null
}

/** Concurrent readers may overwrite each other; reports that are then read again change nothing. */
export async function setCursor(
  tx: Tx,
  { rail, cursor, now }: { rail: string; cursor: string; now: Date },
): Promise<void> {
  await tx
    .insertInto('railCursors')
    .values({ rail, cursor, readAt: now })
    .onConflict(conflict => conflict.column('rail').doUpdateSet({ cursor, readAt: now }))
    .execute()
}

/** Lets one reader of reports go on from where another is. */
export async function copyCursor(tx: Tx, { from, to, now }: { from: string; to: string; now: Date }): Promise<void> {
  const cursor = await cursorOf(tx, from)
  if (cursor !== null) await setCursor(tx, { rail: to, cursor, now })
}
