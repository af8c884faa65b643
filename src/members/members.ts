import { type AccountColumns, type BankAccount, fromColumns, toColumns } from '../bank-accounts/rules.ts'
import { brokenConstraint, type Reader, sql, type Tx } from '../db.ts'
import { Problem, problem } from '../errors.ts'
import * as events from '../events/events.ts'
import { newId } from '../ids.ts'
import type { Currency } from '../money.ts'
import type { Partner } from '../partners/partners.ts'
import * as tiers from '../tiers/tiers.ts'
import { dayIn } from '../time.ts'
import {
  alreadyInvited,
  decideActivation,
  decideInvitation,
  decideRemoval,
  decideReplacement,
  decideUpdate,
  type Facts,
  type Holders,
  type Member,
  memberNotFound,
  type Outcome,
  type Profile,
  type Step,
  statusAfter,
} from './rules.ts'
import type { MemberStatus, MemberUpdate, NewMember } from './schema.ts'

export type { Member } from './rules.ts'

/** What of a partner decides about members. */
export type PartnerRules = Pick<Partner, 'id' | 'country' | 'timeZone' | 'autoActivate'>

type Change = { partner: PartnerRules; memberId: string; now: Date }

/**
 * Invites a member, who is active at once when the partner says so.
 * @throws Problem `MemberAlreadyInvited`, `InvalidAddMemberPayload`
 */
export async function invite(
  tx: Tx,
  { partner, body, now }: { partner: PartnerRules; body: NewMember; now: Date },
): Promise<Member> {
  const facts = await readFacts(tx, { partner, member: undefined, wanted: body, now })
  const decided = decideInvitation(body, facts)
  if (decided instanceof Problem) throw decided
  const { profile, steps } = decided
  const partnerId = partner.id
  const member = { ...profile, id: newId('member', now), status: statusAfter.invited }
  const { id, status } = member
  return await refusingTaken(tx, { partnerId, member }, async () => {
    const columns = { ...columnsOf(profile), partnerId, id, status, createdAt: now, updatedAt: now }
    await tx.insertInto('members').values(columns).execute()
    return await take(tx, { partnerId, member, steps, now })
  })
}

/** @throws Problem `MemberNotFound`, `MemberAlreadyInvited`, `InvalidUpdateMemberPayload` */
export async function update(tx: Tx, { update, ...change }: Change & { update: MemberUpdate }): Promise<Member> {
  const { partner, now } = change
  return await alter(tx, change, async member => {
    const facts = await readFacts(tx, { partner, member, wanted: { ...member, ...update }, now })
    return decideUpdate(member, update, facts)
  })
}

/**
 * Makes a member exactly what is given, and brings back one who was removed.
 * @throws Problem `MemberNotFound`, `MemberAlreadyInvited`, `InvalidUpdateMemberPayload`
 */
export async function replace(tx: Tx, { body, ...change }: Change & { body: NewMember }): Promise<Member> {
  const { partner, now } = change
  return await alter(tx, change, async member => {
    return decideReplacement(member, body, await readFacts(tx, { partner, member, wanted: body, now }))
  })
}

/** Makes a member inactive; the books are kept. Removing one again changes nothing. @throws Problem `MemberNotFound` */
export async function remove(tx: Tx, change: Change): Promise<Member> {
  return await alter(tx, change, async member => decideRemoval(member))
}

/** Lets an invited member withdraw. @throws Problem `MemberNotFound`, `Conflict` for an inactive one */
export async function activate(tx: Tx, change: Change): Promise<Member> {
  return await alter(tx, change, async member => decideActivation(member))
}

/** Gives a member an account without checking it. Only for the sandbox, which shows what a failing account does. */
export async function setUncheckedAccount(
  tx: Tx,
  { partnerId, memberId, account, now }: { partnerId: string; memberId: string; account: BankAccount; now: Date },
): Promise<void> {
  await set(tx, { partnerId, memberId, columns: toColumns(account), now })
}

/** @throws Problem `MemberNotFound`, also for another partner's member */
export async function find(
  db: Reader,
  { partnerId, memberId }: { partnerId: string; memberId: string },
): Promise<Member> {
  return toMember(await select(db, partnerId).where('id', '=', memberId).executeTakeFirst(), memberId)
}

/** @throws Problem `MemberNotFound`, also for another partner's member */
export async function requireMember(
  db: Reader,
  { partnerId, memberId }: { partnerId: string; memberId: string },
): Promise<void> {
  const member = await db
    .selectFrom('members')
    .select('id')
    .where('partnerId', '=', partnerId)
    .where('id', '=', memberId)
    .executeTakeFirst()
  if (member === undefined) throw memberNotFound(memberId)
}

/** The currency of a member's pay. @throws Problem `MemberNotFound`, also for another partner's member */
export async function currencyOf(
  db: Reader,
  { partnerId, memberId }: { partnerId: string; memberId: string },
): Promise<Currency> {
  const found = await db
    .selectFrom('members as m')
    .innerJoin('tiers as t', join => join.onRef('t.partnerId', '=', 'm.partnerId').onRef('t.name', '=', 'm.tier'))
    .select('t.currency')
    .where('m.partnerId', '=', partnerId)
    .where('m.id', '=', memberId)
    .executeTakeFirst()
  if (found === undefined) throw memberNotFound(memberId)
  return found.currency
}

/** A member matches when each list that is given holds theirs; e-mails in any case. */
export type Filter = { memberIds?: string[]; statuses?: MemberStatus[]; emails?: string[]; workerIds?: string[] }

/** Newest first. */
export async function list(
  db: Reader,
  { partnerId, filter, page }: { partnerId: string; filter: Filter; page: { skip: number; take: number } },
): Promise<Member[]> {
  const rows = await select(db, partnerId)
    .where(matching(partnerId, filter))
    .orderBy('id', 'desc')
    .offset(page.skip)
    .limit(page.take)
    .execute()
  return rows.map(row => toMember(row, row.id))
}

// Of a file so many rows are read at once.
const rowsAtOnce = 2_000

/** All of them, oldest first: whoever comes while they are read stands at the end. */
export async function* listAll(
  db: Reader,
  { partnerId, filter }: { partnerId: string; filter: Filter },
): AsyncGenerator<Member[]> {
  for (let after = ''; ; ) {
    const rows = await select(db, partnerId)
      .where(matching(partnerId, filter))
      .where('id', '>', after)
      .orderBy('id')
      .limit(rowsAtOnce)
      .execute()
    const last = rows.at(-1)
    if (last === undefined) return
    after = last.id
    yield rows.map(row => toMember(row, row.id))
  }
}

export async function count(db: Reader, { partnerId, filter }: { partnerId: string; filter: Filter }): Promise<number> {
  const { total } = await db
    .selectFrom('members')
    .select(sql<number>`count(*)::integer`.as('total'))
    .where('partnerId', '=', partnerId)
    .where(matching(partnerId, filter))
    .executeTakeFirstOrThrow()
  return total
}

function matching(partnerId: string, { memberIds, statuses, emails, workerIds }: Filter) {
  const conditions = [
    ...(memberIds === undefined ? [] : [sql<boolean>`id = any(${memberIds}::text[])`]),
    ...(statuses === undefined ? [] : [sql<boolean>`status = any(${statuses}::text[])`]),
    ...(emails === undefined ? [] : [sql<boolean>`id = any(array(${withEmails(partnerId, emails)}))`]),
    ...(workerIds === undefined ? [] : [sql<boolean>`worker_id = any(${workerIds}::text[])`]),
  ]
  return conditions.length === 0 ? sql<boolean>`true` : sql.join<boolean>(conditions, sql` and `)
}

// The inactive have an index of their own. Not by `in`, for which the planner expects half of all members, and would rather
// read them all.
function withEmails(partnerId: string, emails: string[]) {
  const those = sql`
    select id from members join unnest(${emails}::text[]) as given on lower(email) = lower(given)
     where partner_id = ${partnerId}`
  return sql`${those} and status in ('active', 'invited') union all ${those} and status = 'inactive'`
}

// Reads the member under a lock, decides, and writes what was decided.
async function alter(
  tx: Tx,
  { partner, memberId, now }: Change,
  decide: (member: Member) => Promise<Outcome | Problem>,
): Promise<Member> {
  const partnerId = partner.id
  const row = await select(tx, partnerId).where('id', '=', memberId).forNoKeyUpdate().executeTakeFirst()
  const member = toMember(row, memberId)
  const outcome = await decide(member)
  if (outcome instanceof Problem) throw outcome
  const { profile, changed, steps } = outcome
  const altered = { ...member, ...profile }
  return await refusingTaken(tx, { partnerId, member: altered }, async () => {
    if (changed.length > 0) {
      await set(tx, { partnerId, memberId, columns: columnsOf(profile), now })
      await append(tx, 'updated', { partnerId, member: altered, changed, now })
    }
    return await take(tx, { partnerId, member: altered, steps, now })
  })
}

// One step at a time, since the database knows only single edges and each is told by an event.
async function take(
  tx: Tx,
  { partnerId, member, steps, now }: { partnerId: string; member: Member; steps: Step[]; now: Date },
): Promise<Member> {
  let current = member
  for (const step of steps) {
    const status = statusAfter[step]
    if (status !== current.status) await set(tx, { partnerId, memberId: member.id, columns: { status }, now })
    current = { ...current, status }
    await append(tx, step, { partnerId, member: current, now })
  }
  return current
}

/**
 * Runs a write that may find the e-mail or `workerId` taken since the facts were read: then the unique index speaks, and
 * the answer is the same as if the rule had. The savepoint keeps the transaction able to look up who has it.
 * @throws Problem `MemberAlreadyInvited`; `Conflict` when the other member has let go of it again meanwhile
 */
async function refusingTaken(
  tx: Tx,
  { partnerId, member }: { partnerId: string; member: Member },
  write: () => Promise<Member>,
): Promise<Member> {
  await sql`savepoint member_write`.execute(tx)
  try {
    const written = await write()
    await sql`release savepoint member_write`.execute(tx)
    return written
  } catch (error) {
    const constraint = brokenConstraint(error)
    if (constraint !== 'one_member_per_email' && constraint !== 'one_member_per_worker_id') throw error
    await sql`rollback to savepoint member_write`.execute(tx)
    const { emailHolderId, workerIdHolderId } = await findHolders(tx, {
      partnerId,
      memberId: member.id,
      wanted: member,
    })
    const holderId = constraint === 'one_member_per_email' ? emailHolderId : workerIdHolderId
    if (holderId !== null) throw alreadyInvited(holderId)
    throw problem('Conflict', 'Another member is being changed at this moment; try again', {}, { 'retry-after': '1' })
  }
}

type Wanted = { email: string; workerId?: string | null; tier: string }

async function readFacts(
  tx: Tx,
  { partner, member, wanted, now }: { partner: PartnerRules; member: Member | undefined; wanted: Wanted; now: Date },
): Promise<Facts> {
  const partnerId = partner.id
  const tier = await tiers.findTier(tx, { partnerId, name: wanted.tier })
  const tierNames = await tiers.listTiers(tx, partnerId)
  return {
    today: dayIn(partner.timeZone, now),
    country: partner.country,
    autoActivate: partner.autoActivate,
    tierNames: tierNames.map(({ name }) => name),
    tierCurrency: tier?.currency,
    moneyIn: member === undefined || member.tier === wanted.tier ? null : await moneyOf(tx, { partnerId, member }),
    holders: await findHolders(tx, { partnerId, memberId: member?.id ?? null, wanted }),
  }
}

async function moneyOf(tx: Tx, { partnerId, member }: { partnerId: string; member: Member }): Promise<Currency | null> {
  const tier = await tiers.findTier(tx, { partnerId, name: member.tier })
  if (tier === undefined) throw new Error(`${member.id} has a tier that does not exist`)
  const { currency } = tier
  const withMoney = await findWithMoney(tx, { partnerId, members: [{ memberId: member.id, currency }] })
  return withMoney.has(member.id) ? currency : null
}

/**
 * Which of these members have or owe money in that currency; locked by whoever changes them, and so are their balances. Money on
 * its way counts too: a pay run in its grace period, and a withdrawal that may yet come back.
 */
export async function findWithMoney(
  tx: Tx,
  { partnerId, members }: { partnerId: string; members: { memberId: string; currency: Currency }[] },
): Promise<Set<string>> {
  if (members.length === 0) return new Set()
  const { rows } = await sql<{ memberId: string }>`
    with asked as (select * from unnest(${members.map(each => each.memberId)}::text[],
                                        ${members.map(each => each.currency)}::text[]) as asked (member_id, currency))
    select member_id from asked a
     where exists (select from ledger_balances b
                    where b.partner_id = ${partnerId} and b.member_id = a.member_id and b.currency = a.currency
                      and (b.available > 0 or b.owed > 0))
        or exists (select from pay_run_lines l join pay_runs r on r.partner_id = l.partner_id and r.id = l.pay_run_id
                    where r.partner_id = ${partnerId} and r.status = 'Scheduled' and l.member_id = a.member_id
                      and l.currency = a.currency)
        or exists (select from withdrawals w
                    where w.partner_id = ${partnerId} and w.member_id = a.member_id and w.currency = a.currency
                      and w.status in ('held', 'submitted'))`.execute(tx)
  return new Set(rows.map(row => row.memberId))
}

async function findHolders(
  tx: Tx,
  { partnerId, memberId, wanted }: { partnerId: string; memberId: string | null; wanted: Wanted },
): Promise<Holders> {
  const { rows } = await sql<Holders>`
    select (select id from members
             where partner_id = ${partnerId} and id is distinct from ${memberId}::text
               and lower(email) = lower(${wanted.email}) and status in ('active', 'invited')) as email_holder_id,
           (select id from members
             where partner_id = ${partnerId} and id is distinct from ${memberId}::text
               and worker_id = ${wanted.workerId ?? null}::text) as worker_id_holder_id`.execute(tx)
  return rows[0] ?? { emailHolderId: null, workerIdHolderId: null }
}

async function set(
  tx: Tx,
  {
    partnerId,
    memberId,
    columns,
    now,
  }: {
    partnerId: string
    memberId: string
    columns: ReturnType<typeof columnsOf> | AccountColumns | { status: MemberStatus }
    now: Date
  },
): Promise<void> {
  await tx
    .updateTable('members')
    .set({ ...columns, updatedAt: now })
    .where('partnerId', '=', partnerId)
    .where('id', '=', memberId)
    .execute()
}

async function append(
  tx: Tx,
  name: Step | 'updated',
  { partnerId, member, changed, now }: { partnerId: string; member: Member; changed?: (keyof Profile)[]; now: Date },
): Promise<void> {
  const { id: memberId, status } = member
  const data = { memberId, status, ...(changed === undefined ? {} : { changed }) }
  await events.append(tx, { partnerId, type: `member.${name}`, resourceId: memberId, data, now })
}

/** A profile as the columns of its row. */
export function columnsOf({ accountDetails, ...profile }: Profile) {
  return { ...profile, ...toColumns(accountDetails) }
}

/** Members of a partner with what `toMember` reads. */
export function select(db: Reader, partnerId: string) {
  return db
    .selectFrom('members')
    .select(['id', 'status', 'email', 'firstName', 'lastName', 'phone', 'tier', 'workerId'])
    .select(['accountHolder', 'sortCode', 'accountNumber', 'iban', 'enablePayroll', 'dob', 'gender'])
    .where('partnerId', '=', partnerId)
}

type Row = NonNullable<Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirst']>>>

/** @throws Problem `MemberNotFound` when there is no row */
export function toMember(row: Row | undefined, memberId: string): Member {
  if (row === undefined) throw memberNotFound(memberId)
  const { accountHolder, sortCode, accountNumber, iban, ...member } = row
  return { ...member, accountDetails: fromColumns({ accountHolder, sortCode, accountNumber, iban }) }
}
