import { type Reader, sql, type Tx } from '../database/database.ts'
import { sealerOf } from '../sealing/held.ts'
import { constantOf, inScope, type Old } from '../worker/task.ts'
import type { OfMember } from './locks.ts'
import type { Change } from './rules.ts'
import { Fingerprints } from './sealing.ts'

// Rows of imports may still name a member by an e-mail or a worker id that the member no longer has. Their fingerprints are kept as long
// as such rows, so that an erasure finds the rows.

/** Records the e-mails and worker ids that changes replace. */
export async function recordFormerNames(
  tx: Tx,
  { partnerId, changes, now }: { partnerId: string; changes: Change[]; now: Date },
): Promise<void> {
  const fingerprints = new Fingerprints(sealerOf(tx), partnerId)
  const former = changes.flatMap(({ before, after }) => {
    if (before === undefined) return []
    const { email, workerId } = before
    return [
      ...(email === after.email ? [] : fingerprints.ofEmail(email)),
      ...(workerId === null || workerId === after.workerId ? [] : fingerprints.ofWorkerId(workerId)),
    ].map(fingerprint => ({ memberId: before.id, fingerprint }))
  })
  await addFormerNames(tx, { partnerId, former, now })
}

/** Records fingerprints of e-mails and worker ids that members no longer have. */
export async function addFormerNames(
  tx: Tx,
  { partnerId, former, now }: { partnerId: string; former: { memberId: string; fingerprint: Buffer }[]; now: Date },
): Promise<void> {
  if (former.length === 0) return
  await sql`
    insert into member_former_names (partner_id, member_id, fingerprint, changed_at)
    select ${partnerId}, f.member_id, f.fingerprint, ${now}
      from unnest(${former.map(({ memberId }) => memberId)}::text[], ${former.map(({ fingerprint }) => fingerprint)}::bytea[])
        as f (member_id, fingerprint)
        on conflict (partner_id, member_id, fingerprint) do update set changed_at = excluded.changed_at`.execute(tx)
}

/** Lists the fingerprints of the e-mails and worker ids that a member no longer has. */
export async function listFormerNames(db: Reader, { partnerId, memberId }: OfMember): Promise<Buffer[]> {
  const rows = await db
    .selectFrom('memberFormerNames')
    .select('fingerprint')
    .where('partnerId', '=', partnerId)
    .where('memberId', '=', memberId)
    .execute()
  return rows.map(({ fingerprint }) => fingerprint)
}

/** Adds the new fingerprints of former names, when those of the rows that have them are made with another key. */
export async function renewFormerNames(
  tx: Tx,
  { partnerId, renewed }: { partnerId: string; renewed: { old: Buffer | null; renewed: Buffer | null | undefined }[] },
): Promise<void> {
  await sql`
    insert into member_former_names (partner_id, member_id, fingerprint, changed_at)
    select f.partner_id, f.member_id, n.renewed, f.changed_at
      from unnest(${renewed.map(each => each.old)}::bytea[], ${renewed.map(each => each.renewed)}::bytea[]) as n (old, renewed)
      join member_former_names f on f.partner_id = ${partnerId} and f.fingerprint = n.old
        on conflict (partner_id, member_id, fingerprint) do nothing`.execute(tx)
}

/** Deletes former names that no longer occur in a row of an import. */
export async function removeFormerNames(tx: Tx, { before, countMax, scope }: Old): Promise<void> {
  await sql`
    delete from member_former_names d using (
      select f.partner_id, f.member_id, f.fingerprint from member_former_names f
       where f.changed_at < ${before} ${inScope(scope, sql`f.partner_id`)}
         and not exists (select from member_imports i
                          where i.partner_id = ${constantOf(scope) ?? sql`f.partner_id`}
                            and i.forgotten_at is null and i.created_at <= f.changed_at)
       limit ${countMax}) old
     where d.partner_id = old.partner_id and d.member_id = old.member_id and d.fingerprint = old.fingerprint
           ${inScope(scope, sql`d.partner_id`)}`.execute(tx)
}
