import { type Reader, sql } from '../../src/database/database.ts'
import { absentValues } from '../../src/members/fields.ts'
import { newMembers, profileColumns } from '../../src/members/rows.ts'
import type { Member } from '../../src/members/rules.ts'

/** Inserts invited members without events and without counting them, for tests that need thousands. */
export async function insertMembers(
  db: Reader,
  { partnerId, members, now }: { partnerId: string; members: (Partial<Member> & { id: string })[]; now: Date },
): Promise<void> {
  const added = members.map(member => ({
    ...{ ...absentValues, status: 'invited' as const, firstName: 'Sam', lastName: 'Okafor', tier: 'Silver' },
    ...{ email: `${member.id}@example.com`, ...member },
  }))
  await sql`
    with source as materialized (select * from ${await newMembers(db, { partnerId, members: added })}), keys as (
      insert into member_keys (partner_id, member_id, profile_key, payment_key)
      select ${partnerId}, id, profile_key, payment_key from source
    )
    insert into members (partner_id, id, status, ${profileColumns}, created_at, updated_at, instructed_at)
    select ${partnerId}, id, 'invited', ${profileColumns}, ${now}, ${now}, ${now} from source`.execute(db)
}
