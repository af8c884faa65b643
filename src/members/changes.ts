import assert from 'node:assert/strict'
import { sql, type Tx } from '../database/database.ts'
import { isUniqueViolation } from '../database/errors.ts'
import { keepOnNode } from '../database/one-partner.ts'
import * as events from '../events/events.ts'
import { conflict, Problem } from '../kernel/errors.ts'
import type { Currency } from '../kernel/money.ts'
import { mapInSlices, piecesOf } from '../kernel/pace.ts'
import { dayIn } from '../kernel/time.ts'
import type { Partner } from '../partners/partners.ts'
import { sealerOf } from '../sealing/held.ts'
import * as tiers from '../tiers/tiers.ts'
import { recordCounts } from './counts.ts'
import { foldEmail } from './email.ts'
import { recordFormerNames } from './former-names.ts'
import { lockMembers } from './locks.ts'
import { changedMembers, memberReader, newMembers, profileAssignments, profileColumns, select } from './rows.ts'
import {
  type Change,
  changedFields,
  decide,
  type Facts,
  type Member,
  type MemberCommand,
  statusAfter,
  type Transition,
  transitionsOf,
} from './rules.ts'
import { Fingerprints } from './sealing.ts'

export type { Change, MemberCommand } from './rules.ts'

/** The partner's settings that decide about members. */
export type PartnerRules = Pick<Partner, 'id' | 'country' | 'timeZone' | 'autoActivate'>

/** Locks the members. @returns those whose latest change was instructed after `since` */
export async function lockAll(
  tx: Tx,
  { since, ...which }: { partnerId: string; memberIds: string[]; since: Date },
): Promise<Set<string>> {
  const members = await lockMembers(tx, which)
  return new Set(members.filter(({ instructedAt }) => instructedAt > since).map(({ id }) => id))
}

type Deciding = { partner: PartnerRules; commands: MemberCommand[]; areIndependent?: boolean; now: Date }

/**
 * Decides commands in order; each sees the effect of those before it. Writes nothing. Lock the members first if `writeAll` is to
 * write the changes.
 * @returns for each command, in order, the change or the problem
 */
export async function decideAll(
  tx: Tx,
  { partner, commands, areIndependent = false, now }: Deciding,
): Promise<(Change | Problem)[]> {
  const state = await loadState(tx, { partner, commands, now })
  return await mapInSlices(commands, command => {
    const decided = withKeys(decide(command, state.members.get(command.memberId), state), state)
    if (!areIndependent && !(decided instanceof Problem)) recordChange(state, decided)
    return decided
  })
}

/** The change, or the problem that the values of a member whose keys are lost cannot be sealed. */
function withKeys(decided: Change | Problem, { withoutKeys }: MemberState): Change | Problem {
  if (decided instanceof Problem || !withoutKeys.has(decided.after.id) || changedFields(decided).length === 0)
    return decided
  return conflict(`The keys of ${decided.after.id} are lost; offboard the member, and invite the person again`)
}

type Written = { changes: Change[]; onWritten?: ((count: number) => Promise<void>) | undefined } & Writing

/**
 * Writes changes that `decideAll` decided in this transaction, about locked members.
 * @param instructedAt when the partner sent the instruction, which may be long before `now`
 * @param onWritten called with the number of changes written so far
 * @throws a unique violation if another member has taken an e-mail or a `workerId` in the meantime
 */
export async function writeAll(tx: Tx, { changes, onWritten, ...writing }: Written): Promise<void> {
  let written = 0
  for (const wave of wavesOf(changes)) {
    for (const part of piecesOf(wave, writtenAtOnce)) {
      await writeWave(tx, part, writing)
      written += part.length
      await onWritten?.(written)
    }
  }
}

// A larger statement takes so long that progress would seem to stall.
const writtenAtOnce = 1_000

type Writing = { partnerId: string; instructedAt: Date; now: Date }

/** @property source a `select` of at most `countMax` rows with the columns of a new member, in stored form, and their keys */
type Invited = {
  partner: PartnerRules
  source: ReturnType<typeof sql>
  countMax: number
  instructedAt: Date
  now: Date
}

/**
 * Invites every member of a relation in one statement.
 * @param instructedAt as for `writeAll`
 * @returns the ids of the members that were not invited: another member has the e-mail or the `workerId`
 */
export async function inviteAll(tx: Tx, invited: Invited): Promise<string[]> {
  const { partner, source, countMax, instructedAt, now } = invited
  const partnerId = partner.id
  const writing = { partnerId, instructedAt, now }
  const emitted = events.emitFirstSql({
    ...{ partnerId, countMax, now },
    type: 'member.invited',
    made: sql`invited`,
    resourceId: sql`id`,
    data: { memberId: sql<string>`id`, status: sql.lit(statusAfter.invited) },
  })
  const status = partner.autoActivate ? 'active' : 'invited'
  const activated = partner.autoActivate ? sql`array(select id from invited)::text[]` : sql`array[]::text[]`
  const insert = (unlessTaken: ReturnType<typeof sql>) => sql<{ refusedIds: string[]; activatedIds: string[] }>`
    with source as materialized (${source}), invited as (
      ${inserting(sql`source`, writing)} ${unlessTaken}
      returning id, tier
    ), keys as (
      ${insertingKeys(partnerId, { source: sql`source`, added: sql`invited` })}
    ), counted as (
      insert into member_count_changes (partner_id, tier, status, change)
      select ${partnerId}, tier, ${status}, count(*) from invited group by tier
    ), ${emitted}
    select ${activated} as activated_ids,
           array(select id from source except all select id from invited)::text[] as refused_ids`
  // Conflicts are rare, and checking each row for one costs a quarter of the insert.
  await sql`savepoint invitation`.execute(tx)
  const { rows } = await insert(sql``)
    .execute(tx)
    .catch(async error => {
      if (!isUniqueViolation(error)) throw error
      await sql`rollback to savepoint invitation`.execute(tx)
      return await insert(sql`on conflict do nothing`).execute(tx)
    })
  await sql`release savepoint invitation`.execute(tx)
  const { refusedIds = [], activatedIds: memberIds = [] } = rows[0] ?? {}
  const takers = memberIds.map(memberId => ({ memberId, transition: 'activated' as const, isNew: false }))
  await makeTransitions(tx, takers, writing)
  return refusedIds
}

// The facts and the members, as the changes decided so far leave them.
type MemberState = Facts & {
  members: Map<string, Member>
  emailHolders: Map<string, string>
  workerIdHolders: Map<string, string>
  moneyIn: Map<string, Currency>
  /** Members whose keys are lost. */
  withoutKeys: Set<string>
}

async function loadState(
  tx: Tx,
  { partner, commands, now }: { partner: PartnerRules; commands: MemberCommand[]; now: Date },
): Promise<MemberState> {
  const partnerId = partner.id
  const tierCurrencies = await tiers.listCurrencies(tx, partnerId)
  const wanted = commands.flatMap(command => ('wanted' in command ? command.wanted : []))
  const named = commands.filter(command => command.type !== 'Add').map(command => command.memberId)
  const found = await select(tx, partnerId).where(sql<boolean>`id = any(${named}::text[])`).execute()
  const fingerprints = new Fingerprints(sealerOf(tx), partnerId)
  const emails = wanted.flatMap(({ email }) => (email === undefined ? [] : fingerprints.ofEmail(email)))
  const workerIds = wanted.flatMap(({ workerId }) => (workerId == null ? [] : fingerprints.ofWorkerId(workerId)))
  // Not `in`: the planner would expect half of all members to match, and scan the table.
  const holders = await select(tx, partnerId)
    .where(sql<boolean>`
      id = any(array(
        select id from members join unnest(${emails}::bytea[]) as given on email_fingerprint = given
         where partner_id = ${partnerId} and status in ('active', 'invited')
         union all
        select id from members where partner_id = ${partnerId} and worker_id_fingerprint = any(${workerIds}::bytea[])))`)
    .execute()
  const state: MemberState = {
    today: dayIn(partner.timeZone, now),
    country: partner.country,
    autoActivate: partner.autoActivate,
    tierCurrencies,
    members: new Map(),
    emailHolders: new Map(),
    workerIdHolders: new Map(),
    moneyIn: new Map(),
    withoutKeys: new Set(found.flatMap(({ id, paymentKey }) => (paymentKey === null ? [id] : []))),
  }
  for (const member of [...found, ...holders].map(memberReader(tx, partnerId))) addMember(state, member)
  const movers = commands.flatMap(command => {
    const member = state.members.get(command.memberId)
    const tier = 'wanted' in command ? command.wanted.tier : undefined
    if (member === undefined || tier === undefined) return []
    const currency = tierCurrencies.get(member.tier)
    return currency === undefined || currency === tierCurrencies.get(tier) ? [] : [{ memberId: member.id, currency }]
  })
  const withMoney = await findWithMoney(tx, { partnerId, members: movers })
  for (const { memberId, currency } of movers) if (withMoney.has(memberId)) state.moneyIn.set(memberId, currency)
  return state
}

/**
 * Finds the members that have or owe money in their given currency, including money in transit: a pay run in its grace period, or
 * a withdrawal that may still be returned. Unused pay of an ended cycle does not count. Balances do not change while the members
 * are locked.
 */
async function findWithMoney(
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
                      and (b.owed > 0 or (b.available > 0 and exists (
                        select from pay_cycles c
                         where c.partner_id = ${partnerId} and c.id = b.pay_cycle_id and c.status = 'Open'))))
        or exists (select from pay_run_lines l join pay_runs r on r.partner_id = l.partner_id and r.id = l.pay_run_id
                    where r.partner_id = ${partnerId} and r.status = 'Scheduled' and l.member_id = a.member_id
                      and l.currency = a.currency and l.amount <> 0)
        or exists (select from withdrawals w
                    where w.partner_id = ${partnerId} and w.member_id = a.member_id and w.currency = a.currency
                      and w.status in ('held', 'submitted'))`.execute(tx)
  return new Set(rows.map(row => row.memberId))
}

function recordChange(state: MemberState, { before, after }: Change): void {
  if (before !== undefined) {
    const email = foldEmail(before.email)
    if (state.emailHolders.get(email) === before.id) state.emailHolders.delete(email)
    if (before.workerId !== null) state.workerIdHolders.delete(before.workerId)
  }
  addMember(state, after)
}

function addMember({ members, emailHolders, workerIdHolders }: MemberState, member: Member): void {
  members.set(member.id, member)
  if (member.status !== 'inactive') emailHolders.set(foldEmail(member.email), member.id)
  if (member.workerId !== null) workerIdHolders.set(member.workerId, member.id)
}

/**
 * Splits changes into waves, each of which is written at once. In a wave no member occurs twice, and no member takes an e-mail
 * or a `workerId` that another member of the wave gives up, since one statement might find it still taken.
 */
export function wavesOf(changes: Change[]): Change[][] {
  const waves: Change[][] = []
  let named = new Set<string>()
  for (const change of changes) {
    const names = namesOf(change)
    const wave = waves.at(-1)
    if (wave === undefined || names.some(name => named.has(name))) {
      waves.push([change])
      named = new Set(names)
    } else {
      wave.push(change)
      for (const name of names) named.add(name)
    }
  }
  return waves
}

function namesOf({ before, after }: Change): string[] {
  const names = [before, after].flatMap(member => [
    ...(member === undefined ? [] : [member.id, `e ${foldEmail(member.email)}`]),
    ...(member?.workerId == null ? [] : [`w ${member.workerId}`]),
  ])
  return [...new Set(names)]
}

async function writeWave(tx: Tx, wave: Change[], writing: Writing): Promise<void> {
  const { partnerId, now } = writing
  await keepOnNode(tx, [writing])
  const added = wave.filter(({ before }) => before === undefined).map(({ after }) => after)
  const updated = wave.flatMap(change => {
    const changed = changedFields(change)
    return changed.length === 0 ? [] : [{ ...change, changed }]
  })
  await recordCounts(tx, { partnerId, changes: wave })
  if (added.length > 0) {
    await sql`
      with source as materialized (select * from ${await newMembers(tx, { partnerId, members: added })}),
           added as (${inserting(sql`source`, writing)} returning id)
      ${insertingKeys(partnerId, { source: sql`source`, added: sql`added` })}`.execute(tx)
  }
  if (updated.length > 0) {
    await recordFormerNames(tx, { partnerId, changes: updated, now })
    const sequences = await setProfiles(tx, { members: updated.map(({ after }) => after), ...writing })
    const emitted = updated.map(({ before, after, changed }) => {
      const data = { memberId: after.id, status: before?.status ?? after.status, changed }
      const sequence = sequenceOf(sequences, after.id)
      return { partnerId, type: 'member.updated' as const, resourceId: after.id, sequence, data, now }
    })
    await events.emitSql(emitted).execute(tx)
  }
  const moves = wave.map(change => ({ ...change, transitions: transitionsOf(change) }))
  // One transition at a time, since the database allows only single ones and each emits an event.
  for (let index = 0; moves.some(({ transitions }) => index < transitions.length); index++) {
    const takers = moves.flatMap(({ before, after: { id: memberId }, transitions: { [index]: transition } }) =>
      transition === undefined ? [] : [{ memberId, transition, isNew: before === undefined && index === 0 }],
    )
    await makeTransitions(tx, takers, writing)
  }
}

/** @property isNew the member has just been inserted, with the status of this transition */
type Taker = { memberId: string; transition: Transition; isNew: boolean }

type EventCount = { id: string; eventCount: number }

async function makeTransitions(tx: Tx, takers: Taker[], { partnerId, instructedAt, now }: Writing): Promise<void> {
  if (takers.length === 0) return
  const moved = takers.filter(({ isNew }) => !isNew)
  const sequences = new Map<string, number>()
  if (moved.length > 0) {
    const { rows } = await sql<EventCount>`
      update members
         set status = t.status, updated_at = ${now}, instructed_at = greatest(instructed_at, ${instructedAt}),
             event_count = event_count + 1
        from unnest(${moved.map(({ memberId }) => memberId)}::text[],
                    ${moved.map(({ transition }) => statusAfter[transition])}::text[]) as t (member_id, status)
       where members.partner_id = ${partnerId} and members.id = t.member_id
      returning id, event_count`.execute(tx)
    for (const { id, eventCount } of rows) sequences.set(id, eventCount)
  }
  const emitted = takers.map(
    ({ memberId, transition, isNew }): events.NewEvent => ({
      partnerId,
      type: `member.${transition}`,
      resourceId: memberId,
      sequence: isNew ? 1 : sequenceOf(sequences, memberId),
      data: { memberId, status: statusAfter[transition] },
      now,
    }),
  )
  await events.emitSql(emitted).execute(tx)
}

function sequenceOf(sequences: Map<string, number>, memberId: string): number {
  const sequence = sequences.get(memberId)
  assert(sequence !== undefined)
  return sequence
}

function inserting(source: ReturnType<typeof sql>, { partnerId, instructedAt, now }: Writing) {
  return sql`
    insert into members (partner_id, id, status, ${profileColumns}, created_at, updated_at, instructed_at)
    select ${partnerId}, id, ${statusAfter.invited}, ${profileColumns}, ${now}, ${now}, ${instructedAt}
      from ${source}`
}

type Sql = ReturnType<typeof sql>

function insertingKeys(partnerId: string, { source, added }: { source: Sql; added: Sql }) {
  return sql`
    insert into member_keys (partner_id, member_id, profile_key, payment_key)
    select ${partnerId}, id, profile_key, payment_key from ${source} join ${added} using (id)`
}

/** @returns the members' event counts, which include the event of this change */
async function setProfiles(
  tx: Tx,
  { partnerId, members, instructedAt, now }: { members: Member[] } & Writing,
): Promise<Map<string, number>> {
  const { rows } = await sql<EventCount>`
    update members
       set ${profileAssignments('p')}, updated_at = ${now},
           instructed_at = greatest(instructed_at, ${instructedAt}), event_count = event_count + 1
      from ${await changedMembers(tx, { partnerId, members })}
     where members.partner_id = ${partnerId} and members.id = p.id
    returning members.id, members.event_count`.execute(tx)
  return new Map(rows.map(({ id, eventCount }) => [id, eventCount]))
}
