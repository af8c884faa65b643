import { lanesOf, type Reader, sql, type Tx } from '../database/database.ts'

/** @property names the fingerprints of the e-mails and worker ids by which rows may name the member */
type Named = { partnerId: string; memberId: string; names: Buffer[] }

/** SQL for a relation of the rows and steps of imports that concern the member: `import_id`, and `place`, the row or the step. */
function naming(db: Reader, { partnerId, memberId, names }: Named) {
  if (lanesOf(db) === 'shared') return sql`member_import_rows_naming(${partnerId}, ${memberId}, ${names}::bytea[])`
  // A node is not asked by the function, which its coordinator cannot look into.
  return sql`
    (select r.import_id, r.row as place from member_import_rows r
      where r.partner_id = ${partnerId}
        and (r.new_member_id = ${memberId} or r.email_fingerprint = any(${names}::bytea[])
             or r.worker_id_fingerprint = any(${names}::bytea[]))
      union
     select s.import_id, s.step from member_import_steps s where s.partner_id = ${partnerId} and s.member_id = ${memberId})`
}

/** The ids of unfinished imports that concern the member, oldest first. */
export async function listUnfinishedNaming(db: Reader, named: Named & { countMax: number }): Promise<string[]> {
  const { partnerId, countMax } = named
  const { rows } = await sql<{ id: string }>`
    select i.id from member_imports i
     where i.partner_id = ${partnerId} and i.ended_at is null and i.id in (select import_id from ${naming(db, named)} n)
     order by i.created_at, i.id limit ${countMax}`.execute(db)
  return rows.map(({ id }) => id)
}

/** The members of a list whom rows of imports created or are going to create. */
export async function findRowsOf(
  db: Reader,
  members: { partnerId: string; memberId: string }[],
): Promise<{ partnerId: string; memberId: string }[]> {
  const { rows } = await sql<{ partnerId: string; memberId: string }>`
    select distinct r.partner_id, r.new_member_id as member_id
      from unnest(${members.map(({ partnerId }) => partnerId)}::text[], ${members.map(({ memberId }) => memberId)}::text[])
             as e (partner_id, member_id)
      join member_import_rows r on r.partner_id = e.partner_id and r.new_member_id = e.member_id`.execute(db)
  return rows
}

/**
 * Deletes the rows of imports that concern the member, and what was requested about the member. Ids, actions and numbers stay. Unfinished
 * imports, which only a restored database can have, report these rows and actions as failed.
 */
export async function eraseFromImports(tx: Tx, named: Named): Promise<void> {
  const { partnerId, memberId } = named
  const { rows } = await sql<{ importId: string; place: number }>`
    select n.import_id, n.place from ${naming(tx, named)} n`.execute(tx)
  const found = sql`
    unnest(${rows.map(({ importId }) => importId)}::text[], ${rows.map(({ place }) => place)}::integer[]) as n (import_id, place)`
  // A row without a step would be missing in the number of steps that are done.
  await sql`
    insert into member_import_steps (partner_id, import_id, step, action, member_id, fault)
    select r.partner_id, r.import_id, r.row, 'Invite', r.new_member_id, 'the member was erased'
      from ${found}
      join member_imports i on i.partner_id = ${partnerId} and i.id = n.import_id
      join member_import_rows r on r.partner_id = i.partner_id and r.import_id = i.id and r.row = n.place
     where i.ended_at is null and i.rest_action = 'Invite' and r.row > i.applied_through
        on conflict (partner_id, import_id, step) do nothing`.execute(tx)
  await sql`
    delete from member_import_rows r using ${found}
     where r.partner_id = ${partnerId} and r.import_id = n.import_id and r.row = n.place`.execute(tx)
  await sql`
    update member_import_steps set command = null
     where partner_id = ${partnerId} and member_id = ${memberId} and command is not null`.execute(tx)
}

/**
 * Deletes unchanged rows of ended imports that name none of the partner's members. They may name an erased member, who has no
 * fingerprints to find them by. Reads all rows of the partner.
 */
export async function eraseUnknownRows(tx: Tx, partnerId: string): Promise<void> {
  await sql`set local statement_timeout = 0`.execute(tx)
  const named = (column: string) => sql`
    exists (select from members m where m.partner_id = r.partner_id and ${sql.ref(`m.${column}`)} = ${sql.ref(`r.${column}`)})`
  await sql`
    delete from member_import_rows r using member_imports i
     where r.partner_id = ${partnerId} and i.partner_id = r.partner_id and i.id = r.import_id
       and i.ended_at is not null and i.rest_action = 'Unchanged'
       and not exists (select from member_import_steps s
                        where s.partner_id = r.partner_id and s.import_id = r.import_id and s.step = r.row)
       and not ${named('email_fingerprint')} and not ${named('worker_id_fingerprint')}`.execute(tx)
}
