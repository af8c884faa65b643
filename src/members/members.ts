import assert from 'node:assert/strict'
import { type Cursor, isBeyond, requireKnown } from '../database/cursor.ts'
import { type Page, type Reader, sql, type Tx } from '../database/database.ts'
import { brokenConstraint } from '../database/errors.ts'
import { namingPartner } from '../database/one-partner.ts'
import { Problem, problem } from '../kernel/errors.ts'
import { newId } from '../kernel/ids.ts'
import type { Currency } from '../kernel/money.ts'
import { hasMetadata, type Metadata } from '../metadata/metadata.ts'
import { sealerOf } from '../sealing/held.ts'
import * as tiers from '../tiers/tiers.ts'
import { type Change, decideAll, type MemberCommand, type PartnerRules, writeAll } from './changes.ts'
import { readCounts } from './counts.ts'
import { currenciesOf, lockMembers, type OfMember } from './locks.ts'
import { memberReader, profileReader, select } from './rows.ts'
import { type Member, memberNotFound } from './rules.ts'
import type { MemberStatus, NewMember } from './schema.ts'
import { Fingerprints } from './sealing.ts'

export { recount } from './counts.ts'
export type { OfMember } from './locks.ts'
export type { Member } from './rules.ts'

// The last two are of members that processes at different steps of a rotation write; see docs/decisions/0063-rotating-keys.md.
const uniqueNames = [
  'one_member_per_email',
  'one_member_per_worker_id',
  'one_member_per_next_email',
  'one_member_per_next_worker_id',
]

type Commanded = { partner: PartnerRules; command: MemberCommand; now: Date }

/**
 * Invites a member, who becomes active at once if the partner has `autoActivate`.
 * @throws Problem `MemberAlreadyInvited`, `InvalidAddMemberPayload`
 */
export async function invite(
  tx: Tx,
  { partner, body, now }: { partner: PartnerRules; body: NewMember; now: Date },
): Promise<Member> {
  const command = { type: 'Add', memberId: newId('member', now), wanted: body } as const
  return (await change(tx, { partner, command, now })).after
}

/**
 * Makes one change to a member, by the same path as a list of them. A replaced member who is inactive is reinstated; offboarding
 * keeps the books and is idempotent.
 * @throws Problem `MemberNotFound`, `MemberAlreadyInvited`, `InvalidAddMemberPayload` or `InvalidUpdateMemberPayload` for a
 * profile that the rules refuse, `Conflict` for activating an inactive member
 */
export async function change(tx: Tx, { partner, command, now }: Commanded): Promise<Change> {
  const partnerId = partner.id
  await lockMembers(tx, { partnerId, memberIds: [command.memberId] })
  const decided = await decideOne(tx, { partner, command, now })
  await sql`savepoint member_write`.execute(tx)
  try {
    await writeAll(tx, { partnerId, changes: [decided], instructedAt: now, now })
  } catch (error) {
    // The e-mail or the workerId was taken after the other members were read. The unique index catches that, and the command is
    // decided again to report the same problem as the rules. The savepoint keeps the transaction usable for that.
    const constraint = brokenConstraint(error)
    if (constraint === undefined || !uniqueNames.includes(constraint)) throw error
    await sql`rollback to savepoint member_write`.execute(tx)
    await decideOne(tx, { partner, command, now })
    // The other member has given it up since.
    throw problem('Conflict', 'Another member is being changed; try again', {}, { 'retry-after': '1' })
  }
  await sql`release savepoint member_write`.execute(tx)
  return decided
}

/** @throws Problem `MemberNotFound`, also for another partner's member */
export async function find(db: Reader, { partnerId, memberId }: OfMember): Promise<Member> {
  const row = await select(db, partnerId).where('id', '=', memberId).executeTakeFirst()
  if (row === undefined) throw memberNotFound(memberId)
  return memberReader(db, partnerId)(row)
}

/** When a member was created and last changed, and what restricts the member. */
export async function findRecord(db: Reader, { partnerId, memberId }: OfMember) {
  const record = await db
    .selectFrom('members')
    .select(['createdAt', 'updatedAt', 'accountRefused', 'reviewReason'])
    .where('partnerId', '=', partnerId)
    .where('id', '=', memberId)
    .executeTakeFirst()
  if (record === undefined) throw memberNotFound(memberId)
  return record
}

/** @throws Problem `MemberNotFound`, also for another partner's member */
export async function requireMember(db: Reader, { partnerId, memberId }: OfMember): Promise<void> {
  const member = await db
    .selectFrom('members')
    .select('id')
    .where('partnerId', '=', partnerId)
    .where('id', '=', memberId)
    .where('erasedAt', 'is', null)
    .executeTakeFirst()
  if (member === undefined) throw memberNotFound(memberId)
}

/** Finds a member's partner, for an operator who has only the member's id; undefined if there is no such member. */
export async function findPartnerOf(db: Reader, memberId: string): Promise<string | undefined> {
  // One lookup per partner: no index begins with the member's id.
  const { rows } = await sql<{ id: string }>`
    select p.id from partners p
     where exists (select from members m where m.partner_id = p.id and m.id = ${memberId})`.execute(db)
  return rows[0]?.id
}

/** Counts a partner's members by status, or those of one tier. */
export async function countByStatus(
  db: Reader,
  { partnerId, tier }: { partnerId: string; tier?: string },
): Promise<Record<MemberStatus, number>> {
  const counts = { active: 0, invited: 0, inactive: 0 }
  for (const counted of await readCounts(db, partnerId))
    if (tier === undefined || counted.tier === tier) counts[counted.status] += counted.count
  return counts
}

/** Counts a partner's members by tier and status. */
export async function countByTier(
  db: Reader,
  partnerId: string,
): Promise<Map<string, Record<'active' | 'invited', number>>> {
  const counts = new Map<string, Record<'active' | 'invited', number>>()
  for (const { tier, status, count } of await readCounts(db, partnerId))
    if (status !== 'inactive') counts.set(tier, { active: 0, invited: 0, ...counts.get(tier), [status]: count })
  return counts
}

type AvailablePage = { partnerId: string; tier: string; payCycleId: string | undefined; after: string; take: number }

/**
 * The balances of the active members of a tier that are available in the open pay cycle, in the order of the members' ids.
 * @param after an id: only later ones
 */
export async function listAvailable(
  db: Reader,
  { partnerId, tier, payCycleId, after, take }: AvailablePage,
): Promise<{ memberId: string; available: bigint }[]> {
  const { rows } = await sql<{ memberId: string; available: bigint }>`
    select m.id as member_id, coalesce(b.available, 0)::bigint as available
      from members m
      join tiers t on t.partner_id = m.partner_id and t.name = m.tier
      left join ledger_balances b on b.partner_id = m.partner_id and b.member_id = m.id and b.currency = t.currency
                                 and b.pay_cycle_id = ${payCycleId ?? null}
     where m.partner_id = ${partnerId} and m.status = 'active' and m.id > ${after} and m.tier = ${tier}
     order by m.id limit ${take}`.execute(db)
  return rows
}

/** The currency of a member's pay. @throws Problem `MemberNotFound`, also for another partner's member */
export async function currencyOf(db: Reader, { partnerId, memberId }: OfMember): Promise<Currency> {
  const currency = (await currenciesOf(db, { partnerId, memberIds: [memberId] })).get(memberId)
  if (currency === undefined) throw memberNotFound(memberId)
  return currency
}

/** A member whom a file of pay may name. */
export type Payee = Pick<Member, 'id' | 'workerId' | 'email' | 'status'> & { currency: Currency }

/** Finds members by id, worker id or e-mail address, including inactive members. */
export async function findPayees(
  db: Reader,
  { partnerId, ...filter }: { partnerId: string } & Pick<MemberFilter, 'memberIds' | 'workerIds' | 'emails'>,
): Promise<Payee[]> {
  if (Object.values(filter).every(values => values.length === 0)) return []
  const currencies = await tiers.listCurrencies(db, partnerId)
  const rows = await select(db, partnerId).where(matching(db, { partnerId, filter })).execute()
  const open = profileReader(db, partnerId)
  return rows.map(row => {
    const currency = currencies.get(row.tier)
    assert(currency !== undefined)
    return { id: row.id, status: row.status, ...open(row), currency }
  })
}

/**
 * A member matches if every given list contains the member's value. E-mails are case-insensitive. `search` is an id, an e-mail or
 * a worker id, or the beginning of the whole name or the last name, in any case.
 */
export type MemberFilter = {
  memberIds?: string[]
  statuses?: MemberStatus[]
  emails?: string[]
  workerIds?: string[]
  search?: string
  metadata?: Metadata
}

type Filtered = { partnerId: string; filter: MemberFilter }

/**
 * Newest first.
 * @throws Problem `NotFound` if the cursor is unknown or another partner's
 */
export async function list(
  db: Reader,
  { partnerId, filter, page, cursor }: Filtered & { page: Page; cursor?: Cursor | undefined },
): Promise<Member[]> {
  await requireKnown(db, 'members', { partnerId, cursor })
  const rows = await select(db, partnerId)
    .where(matching(db, { partnerId, filter }))
    .where(cursor === undefined ? sql<boolean>`true` : isBeyond(cursor))
    .orderBy('id', 'desc')
    .offset(page.skip)
    .limit(page.take)
    .execute()
  return rows.map(memberReader(db, partnerId))
}

// Rows read per query while streaming a file.
const rowsAtOnce = 2_000

/** Lists all matching members, oldest first. A member who is added during the reading comes last. */
export async function* listAll(db: Reader, { partnerId, filter }: Filtered): AsyncGenerator<Member[]> {
  for (let after = ''; ; ) {
    const rows = await select(db, partnerId)
      .where(matching(db, { partnerId, filter }))
      .where('id', '>', after)
      .orderBy('id')
      .limit(rowsAtOnce)
      .execute()
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.id
    yield rows.map(memberReader(db, partnerId))
  }
}

/** Counts the matching members. Only `metadata` can match many members whose number is not kept. */
export async function count(db: Reader, { partnerId, filter }: Filtered): Promise<number> {
  const { statuses = ['active', 'invited', 'inactive'], ...others } = filter
  if (Object.values(others).every(wanted => wanted === undefined)) {
    const counts = await countByStatus(db, { partnerId })
    return [...new Set(statuses)].reduce((sum, status) => sum + counts[status], 0)
  }
  const { total } = await db
    .selectFrom('members')
    .select(sql<number>`count(*)::integer`.as('total'))
    .where('partnerId', '=', partnerId)
    .where('erasedAt', 'is', null)
    .where(matching(db, { partnerId, filter }))
    .executeTakeFirstOrThrow()
  return total
}

// Enough for a person, who narrows the search down. A program has the other filters.
const foundByNameMax = 1_000

function matching(
  db: Reader,
  { partnerId, filter: { memberIds, statuses, emails, workerIds, search, metadata } }: Filtered,
) {
  const fingerprints = new Fingerprints(sealerOf(db), partnerId)
  const conditions = [
    ...(memberIds === undefined ? [] : [sql<boolean>`id = any(${memberIds}::text[])`]),
    ...(statuses === undefined ? [] : [sql<boolean>`status = any(${statuses}::text[])`]),
    ...(emails === undefined
      ? []
      : [sql<boolean>`id = any(array(${withEmails(fingerprints, { partnerId, emails })}))`]),
    ...(workerIds === undefined
      ? []
      : [
          sql<boolean>`worker_id_fingerprint = any(${workerIds.flatMap(each => fingerprints.ofWorkerId(each))}::bytea[])`,
        ]),
    ...(metadata === undefined
      ? []
      : [hasMetadata(metadata, { partnerId, kind: 'member', resourceId: sql`members.id` })]),
    ...(search === undefined
      ? []
      : [sql<boolean>`id = any(array(${withText(db, fingerprints, { partnerId, text: search, statuses })}))`]),
  ]
  return conditions.length === 0 ? sql<boolean>`true` : sql.join<boolean>(conditions, sql` and `)
}

// Each part is a short range of an index.
function withText(
  db: Reader,
  fingerprints: Fingerprints,
  { partnerId, text, statuses }: { partnerId: string; text: string; statuses: MemberStatus[] | undefined },
) {
  const ofStatuses = statuses === undefined ? sql`` : sql`and status = any(${statuses}::text[])`
  const start = sql`(${partnerId} || ' ' || lower(${text}))`
  const beginsWith = (name: ReturnType<typeof sql>) => {
    const key = sql`(partner_id || ' ' || ${name}) collate "C"`
    // In the order of the index: otherwise the planner reads the table if many members have the name.
    return sql`
    (select id from members
      where ${key} >= ${start} and ${key} < ${start} || chr(1114111) ${ofStatuses} ${namingPartner(db, partnerId)}
      order by ${key} limit ${foundByNameMax})`
  }
  return sql`
    select id from members where partner_id = ${partnerId} and id = ${text}
     union all
    select id from members where partner_id = ${partnerId} and worker_id_fingerprint = any(${fingerprints.ofWorkerId(text)}::bytea[])
     union all ${withEmails(fingerprints, { partnerId, emails: [text] })}
     union all ${beginsWith(sql`lower(first_name || ' ' || last_name)`)}
     union all ${beginsWith(sql`lower(last_name)`)}`
}

// Inactive members have a separate index. Not `in`: the planner would expect half of all members to match, and scan the table.
function withEmails(fingerprints: Fingerprints, { partnerId, emails }: { partnerId: string; emails: string[] }) {
  const those = sql`
    select id from members join unnest(${emails.flatMap(each => fingerprints.ofEmail(each))}::bytea[]) as given
      on email_fingerprint = given
     where partner_id = ${partnerId}`
  return sql`${those} and status in ('active', 'invited') union all ${those} and status = 'inactive'`
}

async function decideOne(tx: Tx, { partner, command, now }: Commanded): Promise<Change> {
  const [decided] = await decideAll(tx, { partner, commands: [command], now })
  assert(decided !== undefined)
  if (decided instanceof Problem) throw decided
  return decided
}
