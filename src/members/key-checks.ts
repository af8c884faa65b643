import { lanesOf, type Reader, sql } from '../database/database.ts'
import { countOf } from '../kernel/text.ts'
import { sealerOf } from '../sealing/held.ts'
import { sealedWithKnownKey } from '../sealing/installation-keys.ts'
import { type Owner, openMemberKey } from '../sealing/member-keys.ts'

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
  namedMax: 10,
}

/** SQL for whether the member `m` should have keys, and has none that can be opened. */
export const lacksKeys = sql`m.erased_at is null and not exists (
  select from member_keys k where k.partner_id = m.partner_id and k.member_id = m.id
     and (k.profile_key is null or ${sealedWithKnownKey('k.profile_key')}))`

/** The members whose keys are missing: how many, and the ids of the first. */
export type MembersWithoutKeys = { count: number; memberIds: string[] }

/**
 * Finds the members whose keys are missing, or sealed with a key that was rotated away: `member_keys` was restored from a backup that is
 * older than the members.
 * @param isThorough whether to look at all members if none of each partner's latest is missing, which takes a second for a million
 */
export async function findMembersWithoutKeys(
  db: Reader,
  { isThorough }: { isThorough: boolean },
): Promise<MembersWithoutKeys> {
  // A distributed PostgreSQL does not look into each partner in one statement, and counts on all nodes at once.
  if (!isThorough && lanesOf(db) === 'shared') {
    const { rows } = await sql`
      select from partners p
       cross join lateral (select * from members where partner_id = p.id order by id desc limit ${limits.latestMembersMax}) m
       where ${lacksKeys} limit 1`.execute(db)
    if (rows.length === 0) return { count: 0, memberIds: [] }
  }
  const { rows } = await sql<MembersWithoutKeys>`
    select count(*)::integer as count, coalesce((array_agg(m.id::text order by m.id))[:${sql.lit(limits.namedMax)}], '{}') as member_ids
      from members m where ${lacksKeys}`.execute(db)
  return rows[0] ?? { count: 0, memberIds: [] }
}

/** Lists members whose keys are missing, in the order of their partners and ids. */
export async function listWithoutKeys(
  db: Reader,
  { after, take }: { after: Owner | undefined; take: number },
): Promise<Owner[]> {
  const beyond = after === undefined ? sql`` : sql`and (m.partner_id, m.id) > (${after.partnerId}, ${after.memberId})`
  const { rows } = await sql<Owner>`
    select m.partner_id, m.id as member_id from members m
     where ${lacksKeys} ${beyond} order by m.partner_id, m.id limit ${take}`.execute(db)
  return rows
}

/** Says how many members lack keys, and names the first. */
export function lackingKeysInWords({ count, memberIds }: MembersWithoutKeys): string {
  const more = count > memberIds.length ? `, and ${count - memberIds.length} more` : ''
  return `${countOf(count, 'member')} ${count === 1 ? 'has' : 'have'} no keys in member_keys that open (${memberIds.join(', ')}${more})`
}

/** Says which keys are missing, and what to do. */
export function withoutKeysInWords(missing: MembersWithoutKeys): string {
  return (
    `The backup of the keys is older than the data: ${lackingKeysInWords(missing)}; restore a later backup of the keys, or if there is none, run midmonth backup keys-lost ` +
    '(docs/operations/backups.md)'
  )
}
