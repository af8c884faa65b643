import { lanesOf, type Reader, sql } from '../database/database.ts'
import { countOf } from '../kernel/text.ts'
import { sealerOf } from '../sealing/held.ts'
import { sealedWithKnownKey } from '../sealing/installation-keys.ts'
import { openMemberKey } from '../sealing/member-keys.ts'

/**
 * Opens the keys of the latest members, which proves that the installation's key is the one of this database.
 * @returns how many members' keys were opened
 * @throws Error if one cannot be opened
 */
export async function openLatestKeys(db: Reader, { take }: { take: number }): Promise<number> {
  const { rows } = await sql<{ partnerId: string; memberId: string; profileKey: Buffer; paymentKey: Buffer | null }>`
    select k.partner_id, k.member_id, k.profile_key, k.payment_key
      from partners p
     cross join lateral (select * from member_keys where partner_id = p.id and profile_key is not null
                          order by member_id desc limit ${take}) k
     order by k.member_id desc limit ${take}`.execute(db)
  const sealer = sealerOf(db)
  for (const { profileKey, paymentKey, ...owner } of rows) {
    openMemberKey(sealer, 'profile', profileKey, owner)
    if (paymentKey !== null) openMemberKey(sealer, 'payment', paymentKey, owner)
  }
  return rows.length
}

/** SQL for whether the keys of the sealed fields of the member `m` are there and can be opened. */
export const hasKeys = sql`exists (
  select from member_keys k
   where k.partner_id = m.partner_id and k.member_id = m.id
     and k.profile_key is not null and ${sealedWithKnownKey('k.profile_key')}
     and (m.account is null or (k.payment_key is not null and ${sealedWithKnownKey('k.payment_key')})))`

const limits = {
  // Of each partner. A backup of the keys that is older than the members lacks the latest.
  latestMembersMax: 10,
}

/**
 * Counts the members whose keys are missing, or sealed with a key that was rotated away: `member_keys` was restored from a backup that is
 * older than the members. A look at each partner's latest members tells that there are none; only otherwise are all members counted.
 */
export async function countMembersWithoutKeys(db: Reader): Promise<number> {
  const isMissing = sql`m.erased_at is null and not exists (
    select from member_keys k where k.partner_id = m.partner_id and k.member_id = m.id
       and (k.profile_key is null or ${sealedWithKnownKey('k.profile_key')}))`
  // A distributed PostgreSQL does not look into each partner in one statement, and counts on all nodes at once.
  if (lanesOf(db) === 'shared') {
    const { rows } = await sql`
      select from partners p
       cross join lateral (select * from members where partner_id = p.id order by id desc limit ${limits.latestMembersMax}) m
       where ${isMissing} limit 1`.execute(db)
    if (rows.length === 0) return 0
  }
  const counted = await sql<{ count: bigint }>`select count(*) as count from members m where ${isMissing}`.execute(db)
  return Number(counted.rows[0]?.count ?? 0)
}

export function membersWithoutKeysInWords(count: number): string {
  return (
    `${countOf(count, 'member')} ${count === 1 ? 'has' : 'have'} no keys in member_keys that open, so what identifies them is lost: ` +
    'the table is from a backup older than the members or the last rotation; restore a later one (docs/operations/backups.md)'
  )
}
