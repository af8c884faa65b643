import { type Reader, sql, type Tx } from '../database/database.ts'
import type { Change, Member } from './rules.ts'
import type { MemberStatus } from './schema.ts'

/** How many members of a tier have a status. */
type Count = { tier: string; status: MemberStatus; count: number }

/**
 * Counts a partner's members. The counts are kept: each statement that changes the tier or the status of members adds its changes
 * as rows, and the worker folds them into the counts. A statement sees each change once, in either place.
 */
export async function readCounts(db: Reader, partnerId: string): Promise<Count[]> {
  const { rows } = await sql<Count>`
    select tier, status, sum(count)::integer as count
      from (select tier, status, count from member_counts where partner_id = ${partnerId}
             union all
            select tier, status, change from member_count_changes where partner_id = ${partnerId}) parts
     group by tier, status having sum(count) <> 0`.execute(db)
  return rows
}

/** A change of a member as far as it is counted. `after` is undefined for a member who was erased. */
type CountedChange = { [When in keyof Change]: Pick<Member, 'tier' | 'status'> | undefined }

/** Records what changes do to the counts, in the transaction that makes them. */
export async function recordCounts(
  tx: Tx,
  { partnerId, changes }: { partnerId: string; changes: CountedChange[] },
): Promise<void> {
  const byKey = new Map<string, Count>()
  const add = ({ tier, status }: Omit<Count, 'count'>, change: 1 | -1) => {
    const key = `${status} ${tier}`
    const counted = byKey.get(key) ?? { tier, status, count: 0 }
    byKey.set(key, { ...counted, count: counted.count + change })
  }
  for (const { before, after } of changes) {
    if (before !== undefined) add(before, -1)
    if (after !== undefined) add(after, 1)
  }
  const changed = [...byKey.values()].filter(({ count }) => count !== 0)
  if (changed.length === 0) return
  await sql`
    insert into member_count_changes (partner_id, tier, status, change)
    select ${partnerId}, tier, status, change
      from unnest(${changed.map(({ tier }) => tier)}::text[], ${changed.map(({ status }) => status)}::text[],
                  ${changed.map(({ count }) => count)}::integer[]) as t (tier, status, change)`.execute(tx)
}

/**
 * Folds changes of a partner's counts into them. Safe to run twice and concurrently: one statement deletes each change and adds it
 * to its count. Skips a partner whose row is locked: a reset must see either the change or the count.
 * @returns how many changes were folded
 */
export async function foldChanges(
  tx: Tx,
  { partnerId, countMax }: { partnerId: string; countMax: number },
): Promise<number> {
  const { rows: locked } = await sql`
    select from partners where id = ${partnerId} for no key update skip locked`.execute(tx)
  if (locked.length === 0) return 0
  const { rows } = await sql<{ count: number }>`
    with due as (
      select id from member_count_changes where partner_id = ${partnerId} limit ${countMax}
    ), folded as (
      delete from member_count_changes c using due where c.partner_id = ${partnerId} and c.id = due.id
      returning c.tier, c.status, c.change
    ), added as (
      insert into member_counts as k (partner_id, tier, status, count)
      select ${partnerId}, tier, status, sum(change) from folded group by tier, status order by tier, status
          on conflict (partner_id, tier, status) do update set count = k.count + excluded.count
    )
    select count(*)::integer as count from folded`.execute(tx)
  return rows[0]?.count ?? 0
}

/**
 * Counts a partner's members anew, after some were deleted. One statement sees each member together with its changes, so that
 * concurrent writes are counted once. The caller has locked the partner.
 */
export async function recount(tx: Tx, partnerId: string): Promise<void> {
  await sql`
    with counts as (
      delete from member_counts where partner_id = ${partnerId}
    ), changes as (
      delete from member_count_changes where partner_id = ${partnerId}
    )
    insert into member_count_changes (partner_id, tier, status, change)
    select partner_id, tier, status, count(*) from members
     where partner_id = ${partnerId} and erased_at is null group by 1, 2, 3`.execute(tx)
}
