import { type Db, type Reader, sql, type Tx } from './database.ts'

// Sums that many transactions change are a total and the changes not yet added to it. Each change is a separate row, so that no
// transaction waits for another, and the worker folds them into the total.

// Summing this many rows takes well under a millisecond.
export const unfoldedMax = 500
// A transaction of this many deletes takes some ten milliseconds.
const foldedAtOnceMax = 5_000

/** The partners that have changes to fold. @param options.countMin fewer changes are cheap to sum and are not folded */
export async function partnersToFold(
  db: Reader,
  changes: 'ledger_cycle_changes' | 'member_count_changes',
  { countMin = unfoldedMax }: { countMin?: number } = {},
): Promise<{ partnerId: string }[]> {
  const { rows } = await sql<{ partnerId: string }>`
    select partner_id from ${sql.table(changes)}
     group by partner_id having count(*) >= ${countMin} order by partner_id`.execute(db)
  return rows
}

/** Folds all changes of what is due. @param fold folds some changes, and returns how many */
export async function foldAll<Due extends object>(
  db: Db,
  due: Due[],
  fold: (tx: Tx, each: Due & { countMax: number }) => Promise<number>,
): Promise<void> {
  const countMax = foldedAtOnceMax
  for (const each of due) while ((await db.transaction().execute(tx => fold(tx, { ...each, countMax }))) === countMax);
}
