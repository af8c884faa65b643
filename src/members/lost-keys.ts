import { sql, type Tx } from '../database/database.ts'
import * as events from '../events/events.ts'
import { sealerOf } from '../sealing/held.ts'
import { sealedFields } from './fields.ts'
import { addFormerNames } from './former-names.ts'
import { lacksKeys } from './key-checks.ts'
import type { MemberStatus } from './schema.ts'
import { fingerprintColumn, sealedColumns, sealNew } from './sealing.ts'

const nothing = { phone: null, workerId: null, accountDetails: null, dob: null, gender: null }

/**
 * Gives up what the lost keys of members sealed. The name, the tier and the books stay. The profile gets a new key, and an e-mail that
 * says what happened; without a payment key, earlier payments show no account and the member gets no new one.
 * @param memberIds locked members of one partner
 * @returns the members who had no keys
 */
export async function giveUpKeys(
  tx: Tx,
  { partnerId, memberIds, now }: { partnerId: string; memberIds: string[]; now: Date },
): Promise<string[]> {
  const { rows: members } = await sql<{ id: string; names: (Buffer | null)[] }>`
    select m.id, array[m.email_fingerprint, m.worker_id_fingerprint] as names from members m
     where m.partner_id = ${partnerId} and m.id = any(${memberIds}::text[]) and ${lacksKeys} order by m.id`.execute(tx)
  const ids = members.map(({ id }) => id)
  const former = members.flatMap(({ id: memberId, names }) =>
    names.flatMap(fingerprint => (fingerprint === null ? [] : { memberId, fingerprint })),
  )
  await addFormerNames(tx, { partnerId, former, now })
  const sealed = ids.map(memberId =>
    sealNew(sealerOf(tx), { ...nothing, email: `${memberId}@keys-lost.invalid` }, { partnerId, memberId }),
  )
  const names = [...sealedColumns, 'profile_key']
  const lists = sql.join(names.map(name => sql`${sealed.map(each => each[name])}::bytea[]`))
  const set = sql.raw(sealedColumns.map(name => `${name} = n.${name}`).join(', '))
  const lost = sql.join(
    sealedFields.map(
      field => sql`case when ${sql.ref(`m.${fingerprintColumn(field)}`)} is not null then ${sql.lit(field)} end`,
    ),
  )
  const { rows } = await sql<{
    id: string
    status: MemberStatus
    eventCount: number
    changed: (typeof sealedFields)[number][]
  }>`
    with n as materialized (select * from unnest(${ids}::text[], ${lists}) as n (id, ${sql.raw(names.join(', '))})),
         before as materialized (
           select m.id, array_remove(array[${lost}], null) as changed
             from members m where m.partner_id = ${partnerId} and m.id = any(${ids}::text[])),
         keys as (
           insert into member_keys (partner_id, member_id, profile_key, payment_key)
           select ${partnerId}, id, profile_key, null from n
               on conflict (partner_id, member_id) do update set profile_key = excluded.profile_key, payment_key = null)
    update members m set ${set}, updated_at = ${now}, event_count = m.event_count + 1
      from n join before using (id)
     where m.partner_id = ${partnerId} and m.id = n.id
    returning m.id, m.status, m.event_count, changed`.execute(tx)
  const emitted = rows.map(({ id, status, eventCount: sequence, changed }) => {
    const data = { memberId: id, status, changed }
    return { partnerId, type: 'member.updated' as const, resourceId: id, sequence, data, now }
  })
  if (emitted.length > 0) await events.emitSql(emitted).execute(tx)
  return ids
}
