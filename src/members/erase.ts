import { type Reader, sql, type Tx } from '../database/database.ts'
import { sealerOf } from '../sealing/held.ts'
import { inScope, type Scope } from '../worker/task.ts'
import { recordCounts } from './counts.ts'
import { listFormerNames } from './former-names.ts'
import type { OfMember } from './locks.ts'
import { profileReader, select } from './rows.ts'
import type { MemberStatus } from './schema.ts'
import { Fingerprints, sealedColumns } from './sealing.ts'

// Not a person's name, and too short to be searched for.
const erasedName = ''

/**
 * A locked member who is to be erased, or was.
 * @property names the fingerprints of the e-mails and worker ids that the member has and had
 */
export type ErasableMember = {
  names: Buffer[]
  status: MemberStatus
  tier: string
  createdAt: Date
  updatedAt: Date
  erasedAt: Date | null
}

/**
 * Locks a member, who may be erased already, also against rows that refer to the member, such as new intents: they are committed
 * before, so that the erasure sees them.
 * @returns undefined if there is no such member
 */
export async function lockErasable(tx: Tx, of: OfMember): Promise<ErasableMember | undefined> {
  await sql`
    select from members where partner_id = ${of.partnerId} and id = ${of.memberId} for update`.execute(tx)
  return await findErasable(tx, of)
}

/** Reads a member, who may be erased already; undefined if there is no such member. */
export async function findErasable(db: Reader, { partnerId, memberId }: OfMember): Promise<ErasableMember | undefined> {
  const found = await db
    .selectFrom('members')
    .select(['status', 'tier', 'createdAt', 'updatedAt', 'erasedAt', 'emailFingerprint', 'workerIdFingerprint'])
    .where('partnerId', '=', partnerId)
    .where('id', '=', memberId)
    .executeTakeFirst()
  if (found === undefined) return undefined
  const { emailFingerprint, workerIdFingerprint, ...member } = found
  const current = sealerOf(db).isRotatingFingerprints
    ? await makeNames(db, { partnerId, memberId })
    : [emailFingerprint, workerIdFingerprint].filter(fingerprint => fingerprint !== null)
  return { ...member, names: [...current, ...(await listFormerNames(db, { partnerId, memberId }))] }
}

// During a rotation, rows of imports may have fingerprints with a key that the member's are no longer made with.
async function makeNames(db: Reader, { partnerId, memberId }: OfMember): Promise<Buffer[]> {
  const member = await select(db, partnerId).where('id', '=', memberId).executeTakeFirst()
  if (member === undefined) return []
  const { email, workerId } = profileReader(db, partnerId)(member)
  const fingerprints = new Fingerprints(sealerOf(db), partnerId)
  return [...fingerprints.ofEmail(email), ...(workerId === null ? [] : fingerprints.ofWorkerId(workerId))]
}

/**
 * Destroys everything that identifies a locked member: the key of the profile, with all copies of what it seals, the names, the
 * fingerprints, and the reasons of restrictions, which are in the words of banks. Copies of the account in intents can still be opened
 * if the payment key is kept.
 */
export async function eraseMember(
  tx: Tx,
  {
    partnerId,
    memberId,
    member: { status, tier },
    keepsPaymentKey,
    now,
  }: { partnerId: string; memberId: string; member: ErasableMember; keepsPaymentKey: boolean; now: Date },
): Promise<void> {
  await sql`
    update member_keys set profile_key = null, payment_key = ${keepsPaymentKey ? sql`payment_key` : sql`null`}
     where partner_id = ${partnerId} and member_id = ${memberId}`.execute(tx)
  await sql`
    update members
       set first_name = ${erasedName}, last_name = ${erasedName},
           ${sql.join(sealedColumns.map(name => sql`${sql.ref(name)} = null`))},
           account_refused = null, review_reason = null, status = 'inactive', erased_at = ${now}, updated_at = ${now}
     where partner_id = ${partnerId} and id = ${memberId}`.execute(tx)
  await sql`delete from member_former_names where partner_id = ${partnerId} and member_id = ${memberId}`.execute(tx)
  await recordCounts(tx, { partnerId, changes: [{ before: { status, tier }, after: undefined }] })
}

/** An erased member who has keys again, from an older backup of them. */
export type Restored = { partnerId: string; memberId: string; createdAt: Date; erasedAt: Date }

/** Lists the erased members who have keys that were destroyed. */
export async function listRestored(db: Reader): Promise<Restored[]> {
  const { rows } = await sql<Restored>`
    select m.partner_id, m.id as member_id, m.created_at, e.erased_at
      from member_erasures e
      join member_keys k on k.partner_id = e.partner_id and k.member_id = e.member_id
      join members m on m.partner_id = e.partner_id and m.id = e.member_id
     where k.profile_key is not null
        or (k.payment_key is not null and (e.last_paid_at is null or e.payment_key_destroyed_at is not null))
     order by m.partner_id, m.id`.execute(db)
  return rows
}

/** Destroys the keys of an erased member again. */
export async function destroyRestoredKeys(tx: Tx, { partnerId, memberId }: OfMember): Promise<void> {
  await sql`
    update member_keys k
       set profile_key = null, payment_key = case when e.last_paid_at is not null and e.payment_key_destroyed_at is null
                                                  then k.payment_key end
      from member_erasures e
     where k.partner_id = ${partnerId} and k.member_id = ${memberId}
       and e.partner_id = k.partner_id and e.member_id = k.member_id`.execute(tx)
}

/** Destroys the payment key of an erased member: it is no longer known to which accounts they were paid. */
export async function destroyPaymentKeys(
  tx: Tx,
  { members, scope }: { members: OfMember[]; scope: Scope | undefined },
): Promise<void> {
  await sql`
    update member_keys k set payment_key = null
      from unnest(${members.map(({ partnerId }) => partnerId)}::text[], ${members.map(({ memberId }) => memberId)}::text[])
        as due (partner_id, member_id)
     where k.partner_id = due.partner_id and k.member_id = due.member_id and k.profile_key is null
           ${inScope(scope, sql`k.partner_id`)}`.execute(tx)
}
