import { type Db, type Reader, sql, type Tx } from '../../database/database.ts'
import { readPlace, rememberPlace, restoreBetween } from '../../database/place.ts'
import { byName, byReference, hasReference } from './by-reference.ts'

// A database that was restored from a backup does not know what was sent to banks after it. So nothing is sent through any rail until a
// person has compared with the banks. Answers are read meanwhile, and whatever they name was sent before the restore.

/** @property recoveredUntil the last commit that the backup has; null if that is unknown */
export type Restore = { detectedAt: Date; how: string; recoveredUntil: Date | null }

/** SQL: whether the database was restored, and the banks have not been compared since. */
export const isRestored = sql<boolean>`exists (select from restores where compared_at is null)`

/** The restore since which the banks have not been compared; several that follow each other are one. */
export async function findRestore(db: Reader): Promise<Restore | undefined> {
  const { rows } = await sql<Restore>`
    select min(detected_at) as detected_at, (array_agg(how order by sequence desc))[1] as how, min(recovered_until) as recovered_until
      from restores where compared_at is null having count(*) > 0`.execute(db)
  return rows[0]
}

/** Tells the operator why nothing is sent. */
export function restoreInWords({
  how,
  recoveredUntil,
}: Pick<Restore, 'how'> & { recoveredUntil: Date | null }): string {
  const until = recoveredUntil === null ? '' : `, with what was committed until ${recoveredUntil.toISOString()}`
  return `${how}${until}: nothing is sent through any rail until the banks are compared and payouts are resumed`
}

/** Stops everything that is sent to banks. @param how what was detected, in words */
export async function recordRestore(
  tx: Tx,
  { how, recoveredUntil = null, now }: { how: string; recoveredUntil?: Date | null; now: Date },
): Promise<void> {
  await sql`
    insert into restores (detected_at, how, recovered_until) values (${now}, ${how}, ${recoveredUntil})`.execute(tx)
}

/** Lets payouts go on after a restore. */
export async function endRestore(tx: Tx, { person, now }: { person: string; now: Date }): Promise<void> {
  await sql`
    update restores set compared_at = ${now}, compared_by = ${person} where compared_at is null`.execute(tx)
}

/** The payments that were not sent before payouts were resumed, and have no batch. */
export async function listUnsent(tx: Tx): Promise<{ partnerId: string; withdrawalId: string }[]> {
  const { rows } = await sql<{ partnerId: string; withdrawalId: string }>`
    select partner_id, withdrawal_id from payouts
     where batch_id is null and outcome is null and sent_at is null
     order by partner_id, withdrawal_id`.execute(tx)
  return rows
}

/**
 * Detects that the database was restored by another tool, and remembers where it is now. Called before anything is sent to a bank, since a
 * server can be restored under running processes, and so that a failover is seen before the new primary is restarted, which forgets that
 * it was a standby.
 * @param recoveredUntil the last commit that the backup has, if it is known
 * @returns what was detected; undefined for nothing
 */
export async function detectRestore(
  db: Db,
  { recoveredUntil = null, now }: { recoveredUntil?: Date | null; now: Date },
): Promise<string | undefined> {
  const place = await readPlace(db)
  if (place === undefined || place.isKnown) return undefined
  return await db.transaction().execute(async tx => {
    const before = await rememberPlace(tx, { place, now })
    const how = before && restoreBetween(before, place)
    if (how !== undefined) await recordRestore(tx, { how, recoveredUntil, now })
    return how
  })
}

/**
 * Takes what the bank's answers name for sent, while the banks have not been compared since a restore: the batches that the backup had
 * as unsent, and the payments without a batch, which get one. The caller holds the lock of the rail's records.
 * @param names references of payments, and message ids of batches
 */
export async function recogniseSent(
  tx: Tx,
  { rail, names, addSent, now }: { rail: string; names: readonly string[]; addSent: AddSent; now: Date },
): Promise<void> {
  if (names.length === 0 || (await findRestore(tx)) === undefined) return
  const { rows: batches } = await sql<{ id: string }>`
    select id from payout_batches b
     where b.rail = ${rail} and b.status in ('building', 'approved') and b.sending_at is null and b.payment_count > 0
       and (b.message_id = any(${[...names]}::text[])
            or b.id = any(array(select distinct p.batch_id from payouts p
                                 where p.batch_id is not null and p.removed_at is null and ${hasReference(names, { of: 'p' })})))
     order by id for update`.execute(tx)
  const payments: { partnerId: string; reference: string; netAmount: bigint }[] = []
  for (const isNamed of await byReference(tx, names)) {
    const { rows } = await sql<(typeof payments)[number]>`
      select partner_id, reference, net_amount from payouts
       where rail = ${rail} and batch_id is null and outcome is null and ${isNamed()}
       order by reference for update`.execute(tx)
    payments.push(...rows)
  }
  const ids = [...batches.map(({ id }) => id), ...(await addSent(payments))]
  if (ids.length === 0) return
  // Their approvals came after the backup.
  await sql`
    update payout_batches
       set cut_off_at = least(cut_off_at, ${now}), closed_at = coalesce(closed_at, ${now}), status = 'approved', approved_at = ${now}
     where id = any(${ids}::text[]) and status = 'building'`.execute(tx)
  await sql`
    update payout_batches set status = 'sent', sending_at = ${now}, sent_at = ${now}
     where id = any(${ids}::text[])`.execute(tx)
}

/**
 * Takes payments without a batch for sent, because a person knows that they were, before a restore. The caller gives them their outcome.
 * @param payments their references, or the withdrawals' ids
 */
export async function takeForSent(
  tx: Tx,
  { rail, payments, now }: { rail: string; payments: readonly string[]; now: Date },
): Promise<void> {
  if ((await findRestore(tx)) === undefined) return
  // In the order in which all code locks several payments.
  for (const payment of [...payments].sort()) {
    const isNamed = await byName(tx, payment)
    await sql`
      update payouts set sent_at = ${now}
       where ${isNamed()} and rail = ${rail} and batch_id is null and outcome is null and sent_at is null`.execute(tx)
  }
}

/** Puts payments into batches that take no others. @returns the ids of the batches */
type AddSent = (payments: { partnerId: string; reference: string; netAmount: bigint }[]) => Promise<string[]>

/**
 * The payments that the bank has named before they were sent, which it made before a restore: they must not be sent. The bank's answer
 * arrived before the payment had its reference again.
 */
export async function listNamedBefore(
  tx: Tx,
  { rail, references }: { rail: string; references: readonly string[] },
): Promise<Set<string>> {
  if (references.length === 0) return new Set()
  const { rows } = await sql<{ reference: string }>`
    select distinct reference from bank_records
     where rail = ${rail} and reference = any(${[...references]}::text[]) and exists (select from restores)`.execute(tx)
  return new Set(rows.map(({ reference }) => reference))
}
