import { type Reader, sql, type Tx } from '../database/database.ts'
import type { ImportNames } from '../members/erase.ts'

type Named = { partnerId: string; memberId: string; names: ImportNames }

/** SQL condition: a row of an import names the member, or created them. */
function isNamed({ memberId, names: { emailFingerprint, workerIdFingerprint } }: Named) {
  return sql<boolean>`(r.new_member_id = ${memberId} or r.email_fingerprint = ${emailFingerprint}
                       or r.worker_id_fingerprint = ${workerIdFingerprint})`
}

/** The ids of unfinished imports with a row or an action for the member, oldest first. */
export async function listUnfinishedNaming(db: Reader, named: Named & { countMax: number }): Promise<string[]> {
  const { partnerId, memberId, countMax } = named
  const { rows } = await sql<{ id: string }>`
    select i.id from member_imports i
     where i.partner_id = ${partnerId} and i.ended_at is null
       and (exists (select from member_import_steps s
                     where s.partner_id = i.partner_id and s.import_id = i.id and s.member_id = ${memberId})
            or exists (select from member_import_rows r
                        where r.partner_id = i.partner_id and r.import_id = i.id and ${isNamed(named)}))
     order by i.created_at, i.id limit ${countMax}`.execute(db)
  return rows.map(({ id }) => id)
}

/** Deletes the rows of imports that name the member, and what was requested about the member. Ids, actions and numbers stay. */
export async function eraseFromImports(tx: Tx, named: Named): Promise<void> {
  const { partnerId, memberId } = named
  await sql`delete from member_import_rows r where r.partner_id = ${partnerId} and ${isNamed(named)}`.execute(tx)
  await sql`
    update member_import_steps set command = null
     where partner_id = ${partnerId} and member_id = ${memberId} and command is not null`.execute(tx)
}
