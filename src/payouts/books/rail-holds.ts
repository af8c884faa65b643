import type { RawBuilder } from 'kysely'
import { type Reader, sql, type Tx } from '../../database/database.ts'
import { isRestored } from './restores.ts'

// Nothing is sent through a rail that is held: no file is delivered, and no request is made or repeated. Answers are read as ever. After a
// restore, all rails are held.

export type RailHold = { rail: string; heldAt: Date; heldBy: string }

/** Holds a rail. Idempotent. @returns whether that changed anything */
export async function hold(
  tx: Tx,
  { rail, person, now }: { rail: string; person: string; now: Date },
): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    insert into payout_rail_holds (rail, held_at, held_by) values (${rail}, ${now}, ${person})
        on conflict (rail) where released_at is null do nothing`.execute(tx)
  return numAffectedRows > 0n
}

/** Releases a rail. Idempotent. @returns whether that changed anything */
export async function release(
  tx: Tx,
  { rail, person, now }: { rail: string; person: string; now: Date },
): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    update payout_rail_holds set released_at = ${now}, released_by = ${person}
     where rail = ${rail} and released_at is null`.execute(tx)
  return numAffectedRows > 0n
}

export async function isHeld(db: Reader, rail: string): Promise<boolean> {
  const { rows } = await sql<{ isHeld: boolean }>`select ${holds(sql`${rail}`)} as is_held`.execute(db)
  return rows[0]?.isHeld ?? false
}

/** SQL: whether a rail is held. */
export function holds(rail: RawBuilder<unknown>): RawBuilder<boolean> {
  return sql<boolean>`(${isRestored} or exists (select from payout_rail_holds h where h.rail = ${rail} and h.released_at is null))`
}

/** Whether a rail is or was held. A hold stays when its rail is taken out of the settings. */
export async function wasEverHeld(db: Reader, rail: string): Promise<boolean> {
  const found = await db.selectFrom('payoutRailHolds').select('rail').where('rail', '=', rail).executeTakeFirst()
  return found !== undefined
}

/** The rails that are held, the longest first. */
export async function list(db: Reader): Promise<RailHold[]> {
  return await db
    .selectFrom('payoutRailHolds')
    .select(['rail', 'heldAt', 'heldBy'])
    .where('releasedAt', 'is', null)
    .orderBy('heldAt')
    .orderBy('rail')
    .execute()
}
