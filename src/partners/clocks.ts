import { lanesOf, type Reader, sql, type Tx } from '../database/database.ts'
import type { Scope } from '../worker/task.ts'

// On a sandbox each partner has a clock: real time plus an offset that only grows, until a reset. In a live installation the
// table of clocks is empty.

/** How far a partner's clock can be ahead: long enough to see a year end, short enough to be worked through step by step. */
export const aheadMsMax = 400 * 86_400_000

/** How far the partner's clock is ahead of real time. */
export async function readOffsetMs(db: Reader, partnerId: string): Promise<number> {
  const row = await db
    .selectFrom('sandboxClocks')
    .select('offsetMs')
    .where('partnerId', '=', partnerId)
    .executeTakeFirst()
  return Number(row?.offsetMs ?? 0n)
}

/** The time of a call by the partner's clock. */
export async function partnerNow(db: Reader, { receivedAt }: { receivedAt: Date }, partnerId: string): Promise<Date> {
  return new Date(receivedAt.getTime() + (await readOffsetMs(db, partnerId)))
}

/** SQL for `readOffsetMs` of the partner of a row, such as `w.partner_id`. */
export function offsetMsOf(partnerId: string) {
  return sql`coalesce((select c.offset_ms from sandbox_clocks c where c.partner_id = ${sql.ref(partnerId)}), 0)::float8`
}

/**
 * Creates the partner's clock unless it exists. From then on, every request of the partner reads the offset.
 * @returns whether the clock was created
 */
export async function createClock(tx: Tx, partnerId: string): Promise<boolean> {
  const { rows } = await sql`
    insert into sandbox_clocks (partner_id, offset_ms) values (${partnerId}, 0) on conflict do nothing
    returning partner_id`.execute(tx)
  return rows.length > 0
}

/** Moves the partner's clock forward; an offset that is not larger changes nothing. */
export async function raiseOffset(
  tx: Tx,
  { partnerId, offsetMs }: { partnerId: string; offsetMs: number },
): Promise<void> {
  await sql`
    update sandbox_clocks set offset_ms = greatest(offset_ms, ${offsetMs}) where partner_id = ${partnerId}`.execute(tx)
}

/**
 * Sets the partner's clock back to real time. Call it only from a reset, which deletes everything that was recorded by the moved
 * clock.
 */
export async function resetOffset(tx: Tx, partnerId: string): Promise<void> {
  await sql`update sandbox_clocks set offset_ms = 0 where partner_id = ${partnerId}`.execute(tx)
}

/**
 * Lists the scopes of a task: all partners on real time together, and each partner whose clock is ahead. The task runs once per
 * scope. Where a partner's rows are on one of several nodes, each partner is a scope, since rows of several nodes cannot be locked together,
 * and what belongs to no partner is another.
 */
export async function scopesOf(db: Reader): Promise<{ scope: Scope; offsetMs: number }[]> {
  if (lanesOf(db) === 'partner') {
    const { rows } = await sql<{ partnerId: string; offsetMs: bigint | null }>`
      select p.id as partner_id, c.offset_ms from partners p left join sandbox_clocks c on c.partner_id = p.id order by p.id`.execute(
      db,
    )
    return [
      ...rows.map(({ partnerId, offsetMs }) => ({ scope: { only: partnerId }, offsetMs: Number(offsetMs ?? 0n) })),
      { scope: 'none', offsetMs: 0 },
    ]
  }
  const { rows } = await sql<{ partnerId: string; offsetMs: bigint }>`
    select partner_id, offset_ms from sandbox_clocks where offset_ms > 0 order by partner_id`.execute(db)
  if (rows.length === 0) return [{ scope: 'all', offsetMs: 0 }]
  return [
    { scope: { except: rows.map(({ partnerId }) => partnerId) }, offsetMs: 0 },
    ...rows.map(({ partnerId, offsetMs }) => ({ scope: { only: partnerId }, offsetMs: Number(offsetMs) })),
  ]
}
