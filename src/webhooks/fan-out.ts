import { type Reader, sql, type Tx } from '../database/database.ts'
import { offsetMsOf } from '../partners/clocks.ts'

/** `offsetMs`: how far the clock of the partner is ahead of real time. */
export type Unfinished = { partnerId: string; offsetMs: number; hasUnnumbered: boolean }

/** Finds the partners with endpoints whose feed is numbered further than it is fanned out, or is not numbered to the end. */
export async function partnersToFanOut(db: Reader, { hasClocks }: { hasClocks: boolean }): Promise<Unfinished[]> {
  const { rows } = await sql<Unfinished>`
    select * from (
      select f.partner_id,
             ${hasClocks ? offsetMsOf('f.partner_id') : sql`0::float8`} as offset_ms,
             exists (select from events e where e.partner_id = f.partner_id and e.position is null) as has_unnumbered,
             exists (select from event_feeds n
                      where n.partner_id = f.partner_id and n.last_position > f.position) as has_numbered
        from webhook_feeds f
       where exists (select from webhook_endpoints w where w.partner_id = f.partner_id and w.deleted_at is null)
    ) feed
     where has_unnumbered or has_numbered`.execute(db)
  return rows
}

/** Whether any partner has an endpoint, so that events are worth looking for often. */
export async function hasEndpoints(db: Reader): Promise<boolean> {
  const { rows } = await sql`select from webhook_endpoints where deleted_at is null limit 1`.execute(db)
  return rows.length > 0
}

/**
 * Turns the next events of a partner's feed into deliveries: one per endpoint that takes the type. For a disabled endpoint,
 * records the event as skipped.
 *
 * Safe to run twice: the position up to which the feed is fanned out is recorded in the same transaction, under a lock.
 * @param waits whether to wait for another process that fans out the same feed
 * @returns how many events were read; 0 if the feed is fanned out to its end, or another process is doing that
 */
export async function fanOut(
  tx: Tx,
  { partnerId, countMax, waits, now }: { partnerId: string; countMax: number; waits: boolean; now: Date },
): Promise<number> {
  const { rows: feeds } = await sql<{ position: bigint }>`
    select position from webhook_feeds where partner_id = ${partnerId}
       for update ${waits ? sql`` : sql`skip locked`}`.execute(tx)
  const [feed] = feeds
  if (feed === undefined) return 0
  // Before the deliveries are written: the end of a turn decides under this lock when the endpoint is due next, and must see
  // them. See `release`.
  await sql`
    select from webhook_endpoints where partner_id = ${partnerId} and deleted_at is null
     order by id for no key update`.execute(tx)
  const { rows } = await sql<{ count: bigint }>`
    with next as (
      select id, type, position from events
       where partner_id = ${partnerId} and position > ${feed.position} order by position limit ${countMax}
    ), inserted as (
      insert into webhook_deliveries (partner_id, endpoint_id, event_id, type, state, created_at, due_at)
      select w.partner_id, w.id, next.id, next.type, case when w.enabled then 'pending' else 'skipped' end, ${now},
             case when w.enabled then ${now}::timestamptz end
        from next join webhook_endpoints w on ${takes('w', 'next')}
       where w.partner_id = ${partnerId} and w.deleted_at is null and next.position > w.since_position
       order by w.id, next.id
          on conflict do nothing
      returning endpoint_id, state
    ), woken as (
      update webhook_endpoints w set due_at = least(w.due_at, greatest(w.blocked_until, ${now}))
       where w.partner_id = ${partnerId} and w.id in (select endpoint_id from inserted where state = 'pending')
         and (w.due_at is null or w.due_at > greatest(w.blocked_until, ${now}))
    ), moved as (
      update webhook_feeds set position = (select max(position) from next)
       where partner_id = ${partnerId} and exists (select from next)
    )
    select count(*) from next`.execute(tx)
  return Number(rows[0]?.count)
}

/** SQL of the condition that an endpoint takes the type of an event: by the type, its group (`withdrawal.*`) or `*`. */
export function takes(endpoint: string, event: string) {
  const [types, type] = [sql.ref(`${endpoint}.types`), sql.ref(`${event}.type`)]
  return sql`(array[${type}, split_part(${type}, '.', 1) || '.*', '*'] && ${types})`
}
