import type { Action, Details } from '../audit-log/audit-log.ts'
import { type Db, lanesOf, type Reader, sql, type Tx } from '../database/database.ts'
import { isLockTimeout } from '../database/errors.ts'
import { lockByName } from '../database/named-locks.ts'
import { eraseResponses } from '../idempotency/idempotency.ts'
import { issue, Problem, problem } from '../kernel/errors.ts'
import { eraseFromImports, eraseUnknownRows, findRowsOf } from '../member-imports/erase.ts'
import {
  destroyPaymentKeys,
  destroyRestoredKeys,
  type ErasableMember,
  eraseMember,
  findErasable,
  listRestored,
  lockErasable,
} from '../members/erase.ts'
import { memberNotFound } from '../members/rules.ts'
import * as metadata from '../metadata/metadata.ts'
import { deleteSessionsOf } from '../partners/member-sessions.ts'
import { sealerOf } from '../sealing/held.ts'
import { inScope, type Old } from '../worker/task.ts'
import { listResources, readFacts } from './facts.ts'
import { append, type ErasureSettings, type JournalEntry, readJournal } from './journal.ts'
import { signReceipt } from './receipts.ts'
import { backupsKeptUntil, destroyed, type Kept, keptOf, obstaclesOf, paymentsKeptUntil } from './rules.ts'

type OfMember = { partnerId: string; memberId: string }
type Erasing = OfMember & { settings: ErasureSettings; now: Date }

/** What a receipt says. */
export type Claims = {
  iss: 'midmonth'
  partnerId: string
  memberId: string
  erasedAt: string
  destroyed: readonly string[]
  kept: Kept[]
}

/** An erasure to come. @property obstacles every reason why it would be refused */
export type Preview = { obstacles: string[]; destroyed: readonly string[]; kept: Kept[] }

/**
 * What an erasure would destroy and keep; the receipt if the member was erased.
 * @throws Problem `MemberNotFound`
 */
export async function preview(
  db: Reader,
  { partnerId, memberId, settings, now }: Erasing,
): Promise<Preview | { receipt: string }> {
  const member = await findErasable(db, { partnerId, memberId })
  if (member === undefined) throw memberNotFound(memberId)
  if (member.erasedAt !== null) return { receipt: await readReceipt(db, { partnerId, memberId }) }
  const facts = await readFacts(db, { partnerId, memberId, member, now })
  const kept = keptOf({
    payments: paymentsKeptUntil(facts.lastPaidAt, settings),
    backups: backupsKeptUntil(now, settings),
  })
  return { obstacles: obstaclesOf(facts), destroyed, kept }
}

/**
 * Erases a member, once; a repeated erasure returns the same receipt. Everything is destroyed in this transaction.
 * @param recordOutside records the erasure outside the database; called last
 * @returns the receipt, and the entry of the audit log if the member was erased now
 * @throws Problem `MemberNotFound`; `Conflict` with every reason why the member cannot be erased yet
 */
export async function erase(
  tx: Tx,
  { recordOutside, settings, now, ...of }: Erasing & { recordOutside: (entry: JournalEntry) => Promise<void> },
): Promise<{ receipt: string; audit?: { action: Action; details: Details; partnerId: string } }> {
  await excludeWriters(tx, of)
  const member = await lockErasable(tx, of)
  if (member === undefined) throw memberNotFound(of.memberId)
  if (member.erasedAt !== null) return { receipt: await readReceipt(tx, of) }
  const facts = await readFacts(tx, { ...of, member, now })
  const obstacles = obstaclesOf(facts)
  if (obstacles.length > 0)
    throw new Problem(
      'Conflict',
      obstacles.map(message => issue('Conflict', message)),
    )
  const { lastPaidAt } = facts
  // Not before the last change, which another process may have made by a clock that was ahead: `findLeft` compares the two.
  const erasedAt = now > member.updatedAt ? now : member.updatedAt
  const receipt = await destroy(tx, { ...of, member, lastPaidAt, settings, now: erasedAt })
  const { partnerId, memberId } = of
  await recordOutside({ partnerId, memberId, erasedAt: erasedAt.toISOString() })
  const details = { paymentsKeptUntil: paymentsKeptUntil(lastPaidAt, settings)?.toISOString() ?? null }
  return { receipt, audit: { action: 'member.erase', details, partnerId } }
}

/** @throws Problem `ServiceUnavailable` in a process that has no journal */
export function requireSettings({ erasures }: { erasures?: ErasureSettings | undefined }): ErasureSettings {
  if (erasures === undefined) throw problem('ServiceUnavailable', 'This process has no journal of erasures')
  return erasures
}

/** Runs a transaction that erases a member, whose entry is taken back from the journal if the transaction is rolled back. */
export async function withJournal<T>(
  db: Db,
  { journal }: ErasureSettings,
  work: (recordOutside: (entry: JournalEntry) => Promise<void>) => Promise<T>,
): Promise<T> {
  const recorded: JournalEntry[] = []
  const recordOutside = async (entry: JournalEntry) => {
    await append(journal, entry)
    recorded.push(entry)
  }
  try {
    return await work(recordOutside)
  } catch (error) {
    // Best effort: without the database it is not known whether the erasure was committed, and it stays in the journal.
    for (const entry of recorded) await takeBack(db, { journal, entry }).catch(() => undefined)
    throw error
  }
}

/** Takes an erasure back from the journal, unless it was committed. Without a database it stays in the journal. */
async function takeBack(db: Db, { journal, entry }: { journal: string; entry: JournalEntry }): Promise<void> {
  await db.transaction().execute(async tx => {
    // Waits for an erasure that is still committing, and keeps a repeated one from beginning.
    const member = await lockErasable(tx, entry)
    if (member === undefined || member.erasedAt === null) await append(journal, { ...entry, rolledBack: true })
  })
}

/**
 * Erases the members again that the journal says were erased, and that a database restored from a backup still has. Nothing prevents
 * that: all reasons to wait were over when they were erased. A member who was changed since was not erased: a crash has left the
 * entry. What came back with an older backup of the keys is destroyed again.
 * @returns how many members were erased
 */
export async function eraseAgain(db: Db, settings: ErasureSettings): Promise<number> {
  await destroyRestored(db)
  const { present, absent } = await findLeft(db, await readJournal(settings.journal))
  // An import of the restored database may be about to create them.
  for (const named of absent.length === 0 ? [] : await findRowsOf(db, absent))
    await db.transaction().execute(tx => eraseFromImports(tx, { ...named, names: [] }))
  let count = 0
  for (const { partnerId, memberId, erasedAt } of present) {
    await db.transaction().execute(async tx => {
      const member = await lockErasable(tx, { partnerId, memberId })
      // Another process may be starting too.
      if (member === undefined || member.erasedAt !== null) return
      const now = new Date(erasedAt)
      const { lastPaidAt } = await readFacts(tx, { partnerId, memberId, member, now })
      await destroy(tx, { partnerId, memberId, member, lastPaidAt, settings, now })
      count += 1
    })
  }
  return count
}

/** Destroys what a backup of the keys that is older than an erasure has restored: keys, rows of imports and stored responses. */
async function destroyRestored(db: Db): Promise<void> {
  const members = await listRestored(db)
  for (const partnerId of new Set(members.map(each => each.partnerId)))
    await db.transaction().execute(tx => eraseUnknownRows(tx, partnerId))
  for (const { createdAt, erasedAt, ...of } of members) {
    await db.transaction().execute(async tx => {
      const { withdrawalIds, intentIds } = await listResources(tx, { ...of, createdAt, now: erasedAt })
      await eraseFromImports(tx, { ...of, names: [] })
      await eraseResponses(tx, { ...of, resourceIds: [...withdrawalIds, ...intentIds] })
      // Last: by the keys the members are found, if this is interrupted.
      await destroyRestoredKeys(tx, of)
    })
  }
}

/** The erasures that the database knows and the journal lacks: the file was lost, or is an older copy. */
async function listUnrecorded(db: Reader, { journal }: Pick<ErasureSettings, 'journal'>): Promise<JournalEntry[]> {
  const nameOf = ({ partnerId, memberId }: OfMember) => `${partnerId} ${memberId}`
  // Read first: an erasure is in the journal before it is in the database.
  const erased = await db
    .selectFrom('memberErasures')
    .select(['partnerId', 'memberId', 'erasedAt'])
    .orderBy('erasedAt')
    .execute()
  const recorded = new Set((await readJournal(journal)).map(nameOf))
  return erased
    .filter(each => !recorded.has(nameOf(each)))
    .map(({ erasedAt, ...of }) => ({ ...of, erasedAt: erasedAt.toISOString() }))
}

/**
 * Writes the erasures to the journal again that only the database knows. What is committed stays erased, so that the lines are true
 * whatever was lost; erasures that a restored database does not know either stay unknown.
 * @returns how many were written
 */
export async function completeJournal(db: Reader, settings: Pick<ErasureSettings, 'journal'>): Promise<number> {
  const unrecorded = await listUnrecorded(db, settings)
  if (unrecorded.length > 0) await append(settings.journal, ...unrecorded)
  return unrecorded.length
}

/** @returns for an operator: where the journal is, how many erasures it lacks, and why it cannot be read, if so */
export async function inspectJournal(
  db: Reader,
  { journal: place }: Pick<ErasureSettings, 'journal'>,
): Promise<{ place: string; unrecorded: number; fault: string | undefined }> {
  try {
    return { place, unrecorded: (await listUnrecorded(db, { journal: place })).length, fault: undefined }
  } catch (error) {
    return { place, unrecorded: 0, fault: error instanceof Error ? error.message : String(error) }
  }
}

/** SQL that finds the erased members who were last paid before an instant, and whose payment keys are still there. */
export const oldEvidence = ({ before, countMax, scope }: Old) => sql`
  select partner_id, member_id from member_erasures
   where payment_key_destroyed_at is null and last_paid_at < ${before} ${inScope(scope)}
   order by last_paid_at limit ${countMax}`

/** Destroys payment keys. @returns how many were destroyed */
export async function removeOldEvidence(db: Db, { now, ...old }: Old & { now: Date }): Promise<number> {
  return await db.transaction().execute(async tx => {
    const { rows } = await sql<OfMember>`
      update member_erasures e set payment_key_destroyed_at = ${now}
        from (${oldEvidence(old)} for update skip locked) old
       where e.partner_id = old.partner_id and e.member_id = old.member_id ${inScope(old.scope, sql`e.partner_id`)}
      returning e.partner_id, e.member_id`.execute(tx)
    await destroyPaymentKeys(tx, { members: rows, scope: old.scope })
    return rows.length
  })
}

/** What a receipt says; it was signed by this installation. */
export function claimsOf(receipt: string): Claims {
  return JSON.parse(Buffer.from(receipt.split('.')[1] ?? '', 'base64url').toString())
}

/**
 * Waits for imports and stored reads that may show the member, and excludes new ones until the erasure is committed.
 * @throws Problem `Conflict` if a list takes longer to upload than a lock may be waited for
 */
async function excludeWriters(tx: Tx, { partnerId }: OfMember): Promise<void> {
  try {
    await lockByName(tx, 'erasure of members of', partnerId)
    await lockByName(tx, 'erasure of stored reads', '')
  } catch (error) {
    if (!isLockTimeout(error)) throw error
    const message = 'A list of members is being uploaded, and may name the member; try again once it is'
    throw problem('Conflict', message, {}, { 'retry-after': '5' })
  }
}

type Destroying = Erasing & { member: ErasableMember; lastPaidAt: Date | null }

async function destroy(
  tx: Tx,
  { partnerId, memberId, member, lastPaidAt, settings, now }: Destroying,
): Promise<string> {
  const of = { partnerId, memberId }
  const { withdrawalIds, intentIds } = await listResources(tx, { ...of, createdAt: member.createdAt, now })
  const paymentsUntil = paymentsKeptUntil(lastPaidAt, settings)
  await eraseFromImports(tx, { ...of, names: member.names })
  await metadata.eraseAll(tx, { partnerId, resourceIds: [memberId, ...intentIds] })
  await deleteSessionsOf(tx, of)
  await eraseMember(tx, { ...of, member, keepsPaymentKey: paymentsUntil !== null, now })
  await eraseResponses(tx, { ...of, resourceIds: [...withdrawalIds, ...intentIds] })
  const kept = keptOf({ payments: paymentsUntil, backups: backupsKeptUntil(now, settings) })
  const claims: Claims = { iss: 'midmonth', ...of, erasedAt: now.toISOString(), destroyed, kept }
  const receipt = signReceipt(sealerOf(tx), claims)
  await tx
    .insertInto('memberErasures')
    .values({ ...of, erasedAt: now, receipt, lastPaidAt })
    .execute()
  return receipt
}

async function readReceipt(db: Reader, { partnerId, memberId }: OfMember): Promise<string> {
  const { receipt } = await db
    .selectFrom('memberErasures')
    .select('receipt')
    .where('partnerId', '=', partnerId)
    .where('memberId', '=', memberId)
    .executeTakeFirstOrThrow()
  return receipt
}

/**
 * The entries that the database does not know of: of members who are as they were before their erasure, and of members whom it does
 * not have. Usually there are none, so that a start reads a few rows by their keys.
 */
async function findLeft(
  db: Reader,
  entries: JournalEntry[],
): Promise<{ present: JournalEntry[]; absent: JournalEntry[] }> {
  const left: { present: JournalEntry[]; absent: JournalEntry[] } = { present: [], absent: [] }
  if (entries.length === 0) return left
  // On several nodes, each partner has a statement.
  const isApart = lanesOf(db) === 'partner'
  for (const group of isApart ? Map.groupBy(entries, ({ partnerId }) => partnerId).values() : [entries]) {
    const partnerId = isApart ? sql`${group[0]?.partnerId}` : sql`e.partner_id`
    const { rows } = await sql<{ place: number; isPresent: boolean }>`
      select e.place::integer, m.id is not null as is_present
        from unnest(${group.map(entry => entry.partnerId)}::text[], ${group.map(({ memberId }) => memberId)}::text[],
                    ${group.map(({ erasedAt }) => erasedAt)}::timestamptz[])
               with ordinality as e (partner_id, member_id, erased_at, place)
        left join members m on m.partner_id = ${partnerId} and m.id = e.member_id
       where (m.id is null or (m.erased_at is null and m.updated_at <= e.erased_at))
         and not exists (select from member_erasures d where d.partner_id = ${partnerId} and d.member_id = e.member_id)
       order by e.place`.execute(db)
    for (const { place, isPresent } of rows)
      left[isPresent ? 'present' : 'absent'].push(...group.slice(place - 1, place))
  }
  return left
}
