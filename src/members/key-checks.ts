import { type Reader, sql } from '../database/database.ts'
import { sealerOf } from '../sealing/held.ts'
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
