import { type Db, type Reader, sql } from '../database/database.ts'
import { withoutLimit } from '../database/wait-limits.ts'
import { sealerOf } from '../sealing/held.ts'
import { hasKeys } from './key-checks.ts'
import { fingerprintColumns, nextColumn, nextFingerprintsOf, openAll, type StoredProfile } from './sealing.ts'

// The steps of a rotation of the key of fingerprints, as far as they change members; see docs/decisions/0063-rotating-keys.md. Each may be
// ended at any point and repeated. Rows are locked for some hundredths of a second, and those that others have locked are left for the next
// pass: a step never waits for a lock.

const membersAtOnce = 250

type Place = { partnerId: string; id: string }

const lacksNext = sql`m.erased_at is null and m.email_fingerprint_next is null and ${hasKeys}`

/** Adds the fingerprints with the next key to all members that lack them, except those whose keys are missing. */
export async function addNextFingerprints(db: Db): Promise<void> {
  await repeat(db, addToPart, lacksNext)
}

/** Counts the members whose keys are missing, so that a rotation has left their fingerprints as they were. */
export async function countLeftOut(db: Db): Promise<number> {
  return await withoutLimit(db, async tx => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::integer as count from members m where m.erased_at is null and not ${hasKeys}`.execute(tx)
    return rows[0]?.count ?? 0
  })
}

/** Makes the fingerprints with the next key the ones by which members are found. */
export async function useNextFingerprints(db: Db): Promise<void> {
  const set = fingerprintColumns.map(name => `${name} = m.${nextColumn(name)}`).join(', ')
  const isLeft = sql`email_fingerprint is distinct from email_fingerprint_next and email_fingerprint_next is not null`
  await repeat(db, changePart({ set, isLeft }), isLeft)
}

/** Removes the second fingerprints, which by now equal the first. */
export async function dropNextFingerprints(db: Db): Promise<void> {
  const set = fingerprintColumns.map(name => `${nextColumn(name)} = null`).join(', ')
  const isLeft = sql`email_fingerprint_next is not null`
  await repeat(db, changePart({ set, isLeft }), isLeft)
}

type Part = (db: Db, after: Place) => Promise<Place | undefined>

/** @param part changes some members of a partner after a place, and returns the place of the last one; undefined at the end */
async function repeat(db: Db, part: Part, isLeft: ReturnType<typeof sql>): Promise<void> {
  for (;;) {
    const left = await partnersWith(db, isLeft)
    if (left.length === 0) return
    for (const partnerId of left) {
      let after: Place | undefined = { partnerId, id: '' }
      while (after !== undefined) after = await part(db, after)
    }
  }
}

async function partnersWith(db: Db, isLeft: ReturnType<typeof sql>): Promise<string[]> {
  return await withoutLimit(db, async tx => {
    const { rows } = await sql<{
      partnerId: string
    }>`select distinct partner_id from members m where ${isLeft}`.execute(tx)
    return rows.map(({ partnerId }) => partnerId)
  })
}

const partOf = ({ partnerId, id }: Place) => sql`
  select partner_id, id from members where partner_id = ${partnerId} and id > ${id} order by id limit ${membersAtOnce}`

const changePart =
  ({ set, isLeft }: { set: string; isLeft: ReturnType<typeof sql> }): Part =>
  async (db, after) => {
    const { rows } = await sql<Place>`
      with part as materialized (${partOf(after)}),
           free as materialized (select m.id from members m join part using (partner_id, id)
                                  where m.partner_id = ${after.partnerId} and ${isLeft} for no key update of m skip locked),
           changed as (update members m set ${sql.raw(set)} from free
                        where m.partner_id = ${after.partnerId} and m.id = free.id)
      select partner_id, id from part order by id desc limit 1`.execute(db)
    return rows[0]
  }

type Stored = Place & StoredProfile & { isLeft: boolean }

async function addToPart(db: Db, after: Place): Promise<Place | undefined> {
  const rows = await readPart(db, after)
  const left = rows.filter(({ isLeft }) => isLeft)
  const sealer = sealerOf(db)
  const next = left.map(({ partnerId, id: memberId, ...stored }) => {
    const fields = openAll(sealer, stored, { partnerId, memberId })
    if (fields === undefined) throw new Error(`The keys of ${memberId} were destroyed`)
    return nextFingerprintsOf(sealer, partnerId, fields)
  })
  const names = fingerprintColumns.map(nextColumn)
  const set = names.map(name => `${name} = n.${name}`).join(', ')
  if (left.length > 0)
    await sql`
      with n as materialized (
             select * from unnest(
               ${left.map(({ id }) => id)}::text[],
               ${left.map(({ profile }) => profile)}::bytea[], ${left.map(({ account }) => account)}::bytea[],
               ${sql.join(names.map(name => sql`${next.map(each => each[name])}::bytea[]`))})
               as n (id, profile, account, ${sql.raw(names.join(', '))})),
           free as materialized (
             -- A member that has changed since it was read already has them, or is read again.
             select m.id from members m join n on m.id = n.id
              where m.partner_id = ${after.partnerId}
                    and m.profile = n.profile and m.account is not distinct from n.account and m.email_fingerprint_next is null
                for no key update of m skip locked)
      update members m set ${sql.raw(set)} from n join free using (id)
       where m.partner_id = ${after.partnerId} and m.id = free.id`.execute(db)
  return rows.at(-1)
}

async function readPart(db: Reader, after: Place): Promise<Stored[]> {
  const { rows } = await sql<Stored>`
    select m.partner_id, m.id, m.profile, m.account, k.profile_key, k.payment_key,
           ${lacksNext} as is_left
      from (${partOf(after)}) p
      join members m on m.partner_id = p.partner_id and m.id = p.id
      left join member_keys k on k.partner_id = m.partner_id and k.member_id = m.id
     order by m.id`.execute(db)
  return rows
}
