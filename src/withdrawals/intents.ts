import assert from 'node:assert/strict'
import { erasedAccount } from '../bank-accounts/rules.ts'
import { openAccount } from '../bank-accounts/sealed-account.ts'
import { cachedSql } from '../database/cached-sql.ts'
import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { brokenConstraint } from '../database/errors.ts'
import { keepOnNode, onOnePartner, onPartnersNode } from '../database/one-partner.ts'
import * as events from '../events/events.ts'
import * as idempotency from '../idempotency/idempotency.ts'
import { Problem, problem } from '../kernel/errors.ts'
import { firstId, newId } from '../kernel/ids.ts'
import { type Money, toWire } from '../kernel/money.ts'
import { addMinutes } from '../kernel/time.ts'
import { lockOfMembers } from '../members/locks.ts'
import { paymentKeyOf } from '../members/sealing.ts'
import { sealerOf } from '../sealing/held.ts'
import { inScope, type Old, partnerOf, type Scope } from '../worker/task.ts'
import { type Banks, readFacts } from './facts.ts'
import { decideIntent, type Facts, type Intent, statusAt } from './rules.ts'

/** A command to create an intent. With `claim`, the response is recorded under the request's idempotency key. */
export type NewIntent = {
  partner: { id: string; intentMinutes: number }
  memberId: string
  amount: Money
  now: Date
  claim?: idempotency.BatchClaim<Intent> | undefined
}

/**
 * Like `createAll`, for one intent. A bank must be connected.
 * @throws Problem the first refusal that applies, in the order of the table of errors
 */
export async function create(tx: Tx, command: Omit<NewIntent, 'claim'>): Promise<Intent> {
  const [intent] = await createAll(tx, [command], { hasRail: () => true })
  if (intent instanceof Problem) throw intent
  assert(intent !== undefined && !(intent instanceof idempotency.Replay))
  return intent
}

/**
 * Creates intents: quotes that are valid for the partner's `intentMinutes` and reserve no funds, so a member may have
 * several. One statement writes all accepted ones, with their events and idempotency records.
 * @returns for each command, in order: the intent, the earlier response for its idempotency key, or the refusal
 */
export async function createAll(
  db: Reader,
  commands: NewIntent[],
  banks: Banks,
): Promise<(Intent | idempotency.Replay | Problem)[]> {
  await keepOnNode(
    db,
    commands.map(({ partner }) => ({ partnerId: partner.id })),
  )
  const known = await idempotency.findAll(
    db,
    commands.map(({ claim }) => claim),
  )
  const asked = await readFacts(
    db,
    commands.map(command => ({ command, partnerId: command.partner.id, memberId: command.memberId, now: command.now })),
    banks,
  )
  const outcomes = asked.map(({ command, facts }, index) => known[index] ?? quote(facts, command))
  const created = outcomes.flatMap((outcome, index) => {
    const command = commands[index]
    if (command === undefined || outcome instanceof Problem || outcome instanceof idempotency.Replay) return []
    return [{ partnerId: command.partner.id, intent: outcome, account: asked[index]?.facts.member?.sealedAccount }]
  })
  if (created.length === 0) return outcomes
  try {
    await insertAll(db, { created, records: idempotency.recordsOf(commands, outcomes) })
  } catch (error) {
    throw hasLostItsMember(error) ? overtakenByReset() : error
  }
  return outcomes
}

// The member and the pay cycle were read earlier, without a lock. Only a sandbox reset deletes them.
function hasLostItsMember(error: unknown): boolean {
  return /^withdrawal_intents_\w+_fkey$/.test(brokenConstraint(error) ?? '')
}

function overtakenByReset(): Problem {
  return problem('Conflict', 'The sandbox was reset during this request; try again', {}, { 'retry-after': '1' })
}

function quote(facts: Facts, { partner, memberId, amount, now }: NewIntent): Intent | Problem {
  const decided = decideIntent(facts, { memberId, amount })
  if (decided instanceof Problem) return decided
  return {
    ...decided,
    id: newId('withdrawalIntent', now),
    status: 'pending',
    createdAt: now,
    expiresAt: addMinutes(now, partner.intentMinutes),
  }
}

type NewIntents = {
  created: { partnerId: string; intent: Intent; account: Buffer | null | undefined }[]
  records: idempotency.KeyRecord[]
}

async function insertAll(db: Reader, { created, records }: NewIntents): Promise<void> {
  const of = <T>(value: (intent: Intent) => T) => created.map(({ intent }) => value(intent))
  const emitted = created.map(({ partnerId, intent }) =>
    eventOf('created', { partnerId, intent, now: intent.createdAt }),
  )
  const { partner, home } = onPartnersNode(created)
  await cachedSql`
    with intents as (
      insert into withdrawal_intents (partner_id, ${insertedColumns})
      select ${partner}, ${insertedColumns} from unnest(
        ${created.map(({ partnerId }) => partnerId)}::text[], ${of(intent => intent.id)}::text[],
        ${of(intent => intent.memberId)}::text[], ${of(intent => intent.payCycleId)}::text[],
        ${of(intent => intent.status)}::text[], ${of(intent => intent.currency)}::text[],
        ${of(intent => intent.grossAmount)}::bigint[], ${of(intent => intent.netAmount)}::bigint[],
        ${of(intent => intent.fee)}::bigint[], ${of(intent => intent.employerFee)}::bigint[],
        ${of(intent => intent.tier)}::text[], ${of(intent => intent.tierVersion)}::integer[],
        ${created.map(({ account }) => account)}::bytea[],
        ${of(intent => intent.createdAt.toISOString())}::timestamptz[],
        ${of(intent => intent.expiresAt.toISOString())}::timestamptz[]) as new (partner_id, ${insertedColumns}) ${home}
    ), events as (${events.emitSql(emitted)})${idempotency.recordSql(db, records)}
    select`.execute(db)
}

const insertedColumns = sql`
  id, member_id, pay_cycle_id, status, currency, gross_amount, net_amount, fee, employer_fee, tier, tier_version, account, created_at, expires_at`

/** Cancels a pending intent. Idempotent. */
export async function cancel(
  tx: Tx,
  { partnerId, intentId, now }: { partnerId: string; intentId: string; now: Date },
): Promise<Intent> {
  const intent = await lock(tx, { partnerId, intentId })
  const status = statusAt(intent, now)
  if (status === 'cancelled') return intent
  if (status !== 'pending')
    throw problem('Conflict', `The withdrawal intent is ${status}; only a pending one can be cancelled`)
  await tx
    .updateTable('withdrawalIntents')
    .set({ status: 'cancelled' })
    .where('partnerId', '=', partnerId)
    .where('id', '=', intentId)
    .execute()
  await events.emit(tx, eventOf('cancelled', { partnerId, intent, now }))
  return { ...intent, status: 'cancelled' }
}

/**
 * Finds an intent, and the withdrawal that it became.
 * @throws Problem `NotFound`, also for another partner's intent
 */
export async function find(
  db: Reader,
  { partnerId, intentId }: { partnerId: string; intentId: string },
): Promise<Intent & { withdrawalId: string | null }> {
  const row = await select(db, { partnerId, intentId })
    .select(({ selectFrom }) =>
      selectFrom('withdrawals')
        .select('withdrawals.id')
        .where('withdrawals.partnerId', '=', partnerId)
        .whereRef('withdrawals.withdrawalIntentId', '=', 'withdrawalIntents.id')
        .as('withdrawalId'),
    )
    .executeTakeFirst()
  return { ...toIntent(db, { partnerId, row }), withdrawalId: row?.withdrawalId ?? null }
}

/** @throws Problem `NotFound`, also for the intent of another member or partner */
export async function requireOwner(
  db: Reader,
  { partnerId, intentId, memberId }: { partnerId: string; intentId: string; memberId: string },
): Promise<void> {
  const intent = await select(db, { partnerId, intentId }).executeTakeFirst()
  if (intent?.memberId !== memberId) throw intentNotFound()
}

/** Counts the quotes of a tier that can still become withdrawals. */
export async function countOpen(
  db: Reader,
  { partnerId, tier, now }: { partnerId: string; tier: string; now: Date },
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from withdrawal_intents
     where partner_id = ${partnerId} and status = 'pending' and expires_at > ${now} and tier = ${tier}`.execute(db)
  return rows[0]?.count ?? 0
}

/** An intent whose account has not been opened: a completion compares it with the member's as it is stored. */
export type LockedIntent = Omit<Intent, 'account'> & { sealedAccount: Buffer }

/**
 * Locks intents and their members, in one statement and in the lock order of `lockMembers`.
 * @param waits whether to wait for rows that are locked; if not, they are skipped
 * @returns for each requested intent, in order: the intent, `missing` or, without waiting, `held`
 */
export async function lockAll(
  tx: Tx,
  asked: { partnerId: string; intentId: string }[],
  { waits }: { waits: boolean },
): Promise<(LockedIntent | 'missing' | 'held')[]> {
  const [lockOfMember, lockOfIntent] = waits
    ? [lockOfMembers.waiting, cachedSql`for update of i`]
    : [lockOfMembers.skipping, cachedSql`for update of i skip locked`]
  const { rows } = await cachedSql<LockedIntent & { partnerId: string }>`
    select i.partner_id, i.id, i.member_id, i.pay_cycle_id, i.status, i.currency, i.gross_amount, i.net_amount, i.fee, i.employer_fee,
           i.tier, i.tier_version, i.account as sealed_account, i.created_at, i.expires_at
      from unnest(${asked.map(each => each.partnerId)}::text[], ${asked.map(each => each.intentId)}::text[])
             as asked (partner_id, id)
      join withdrawal_intents i on i.partner_id = asked.partner_id and i.id = asked.id ${onOnePartner('i', asked)}
      join members m on m.partner_id = i.partner_id and m.id = i.member_id ${onOnePartner('m', asked)}
     ${lockOfMember} ${lockOfIntent}`.execute(tx)
  const held = new Map(rows.map(({ partnerId, ...row }) => [`${partnerId} ${row.id}`, row]))
  const nameOf = (each: { partnerId: string; intentId: string }) => `${each.partnerId} ${each.intentId}`
  const rest = asked.filter(each => !held.has(nameOf(each)))
  const existing = rest.length === 0 ? new Set() : await findExisting(tx, rest)
  return asked.map(each => held.get(nameOf(each)) ?? (existing.has(nameOf(each)) ? 'held' : 'missing'))

  async function findExisting(tx: Tx, some: typeof asked): Promise<Set<string>> {
    const { rows } = await cachedSql<{ partnerId: string; id: string }>`
      select i.partner_id, i.id
        from unnest(${some.map(each => each.partnerId)}::text[], ${some.map(each => each.intentId)}::text[])
               as asked (partner_id, id)
        join withdrawal_intents i on i.partner_id = asked.partner_id and i.id = asked.id
             ${onOnePartner('i', some)}`.execute(tx)
    return new Set(rows.map(row => `${row.partnerId} ${row.id}`))
  }
}

async function lock(tx: Tx, { partnerId, intentId }: { partnerId: string; intentId: string }): Promise<Intent> {
  const row = await select(tx, { partnerId, intentId }).forUpdate().executeTakeFirst()
  return toIntent(tx, { partnerId, row })
}

/** SQL of an update that marks intents as completed. The caller has locked them, and emits their events. */
export function completeSql(completed: { partnerId: string; intent: Intent }[]) {
  return cachedSql`
    update withdrawal_intents i set status = 'completed'
      from unnest(${completed.map(each => each.partnerId)}::text[], ${completed.map(each => each.intent.id)}::text[])
        as done (partner_id, id)
     where i.partner_id = done.partner_id and i.id = done.id ${onOnePartner('i', completed)}`
}

// Older intents are not pending, so that nothing reads the whole history.
const isRecent = sql`expires_at >= (select expired_until from withdrawal_intent_expiry)`

/** The instants at which a partner's intents expire. */
export const due = ({ partnerId }: { partnerId: string }) => sql<{ at: Date; work: number }>`
  select expires_at as at, 1 as work from withdrawal_intents
   where partner_id = ${partnerId} and status = 'pending' and ${isRecent}`

/**
 * Expires intents that are past their time, at most `countMax`, in the order of their expiry. Safe to run twice: only pending ones
 * change.
 * @param from skips intents that expire before this
 * @returns how many expired, and when the last of them did
 */
export async function expireDue(
  tx: Tx,
  { now, from, countMax, scope }: { now: Date; from: Date | undefined; countMax: number; scope: Scope | undefined },
): Promise<{ count: number; last: Date | undefined }> {
  const { rows } = await sql<Quoted & { partnerId: string; expiresAt: Date }>`
    update withdrawal_intents i set status = 'expired'
      from (select partner_id, id from withdrawal_intents
             where status = 'pending' and expires_at <= ${now} and ${isRecent} ${inScope(scope)}
                   ${from === undefined ? sql`` : sql`and expires_at >= ${from}`}
             order by expires_at limit ${countMax} for update skip locked) due
     where i.partner_id = due.partner_id and i.id = due.id ${inScope(scope, sql`i.partner_id`)}
    returning i.partner_id, i.id, i.member_id, i.pay_cycle_id, i.gross_amount, i.fee, i.net_amount, i.currency, i.expires_at`.execute(
    tx,
  )
  for (const { partnerId, expiresAt: _, ...intent } of rows) {
    await events.emit(tx, eventOf('expired', { partnerId, intent, now }))
  }
  const instants = rows.map(({ expiresAt }) => expiresAt.getTime())
  return { count: rows.length, last: rows.length === 0 ? undefined : new Date(Math.max(...instants)) }
}

/**
 * Moves the time before which no intent is pending: to an hour ago, but never beyond a pending intent. Nothing still inserts
 * intents that expired before that: clocks are less than an hour apart, and transactions last seconds.
 * @param now by the real clock
 */
export async function recordExpiry(tx: Tx, now: Date): Promise<void> {
  const hourAgo = new Date(now.getTime() - 3_600_000)
  await sql`
    update withdrawal_intent_expiry set expired_until = greatest(expired_until, coalesce(
      (select expires_at from withdrawal_intents
        where status = 'pending' and expires_at < ${hourAgo} and ${isRecent}
        order by expires_at limit 1), ${hourAgo}))`.execute(tx)
}

// Rows of the largest partners in this time are read in some tenths of a second.
const windowMs = 7 * 86_400_000

/**
 * The ids of a member's intents that are not withdrawals, in pages, oldest first. No index has the member, because it would cost every
 * intent, so all intents of the partner since the member's creation are read that are not certain to be withdrawals.
 */
export async function* listUnusedIds(
  db: Reader,
  { partnerId, memberId, since, now }: { partnerId: string; memberId: string; since: Date; now: Date },
): AsyncGenerator<string[]> {
  const { rows: known } = await sql<{ start: Date }>`
    select greatest(${since}::timestamptz, removed_until - interval '2 days') as start from withdrawal_intent_expiry`.execute(
    db,
  )
  for (let from = known[0]?.start ?? since; from <= now; from = new Date(from.getTime() + windowMs)) {
    const { rows } = await sql<{ id: string }>`
      select id from withdrawal_intents
       where partner_id = ${partnerId} and member_id = ${memberId} and status <> 'completed'
         and id >= ${firstId('withdrawalIntent', from)}
         and id < ${firstId('withdrawalIntent', new Date(from.getTime() + windowMs))}
       order by id`.execute(db)
    yield rows.map(({ id }) => id)
  }
}

/** SQL that finds intents from before an instant that never became a withdrawal and no longer can. */
export const oldUnused = ({ before, countMax, scope }: Old) => sql`
  select partner_id, id from withdrawal_intents
   where status in ('expired', 'cancelled') and created_at < ${before} ${inScope(scope)}
     and expires_at >= (select removed_until from withdrawal_intent_expiry)
     and expires_at < ${before}::timestamptz + (select max(intent_minutes) * interval '1 minute' from partners)
   order by expires_at limit ${countMax}`

/** @returns how many intents were deleted, with their metadata */
export async function removeOldUnused(db: Db, old: Old): Promise<number> {
  const { rows } = await sql`
    delete from withdrawal_intents i using (${oldUnused(old)}) old
     where i.partner_id = old.partner_id and i.id = old.id
    returning 1`.execute(db)
  // A partner whose clock was moved does not decide for the others.
  if (partnerOf(old.scope) === undefined) {
    await sql`
      update withdrawal_intent_expiry set removed_until = greatest(removed_until, least(expired_until, coalesce(
        (select expires_at from withdrawal_intents
          where status <> 'completed' and expires_at < ${old.before} and expires_at >= (select removed_until from withdrawal_intent_expiry)
          order by expires_at limit 1), ${old.before})))`.execute(db)
  }
  return rows.length
}

function select(db: Reader, { partnerId, intentId }: { partnerId: string; intentId: string }) {
  return db
    .selectFrom('withdrawalIntents')
    .select(['id', 'memberId', 'payCycleId', 'status', 'currency', 'fee', 'employerFee'])
    .select(['grossAmount', 'netAmount'])
    .select(['tier', 'tierVersion', 'account', 'createdAt', 'expiresAt'])
    .select(paymentKeyOf('withdrawal_intents', { memberId: 'member_id', partnerId }).as('paymentKey'))
    .where('partnerId', '=', partnerId)
    .where('id', '=', intentId)
}

type IntentRow = NonNullable<Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirst']>>>

export function intentNotFound(): Problem {
  return problem('NotFound', 'There is no such withdrawal intent')
}

function toIntent(db: Reader, { partnerId, row }: { partnerId: string; row: IntentRow | undefined }): Intent {
  if (row === undefined) throw intentNotFound()
  const { account, paymentKey, ...intent } = row
  const opened = openAccount(sealerOf(db), { account, paymentKey }, { partnerId, memberId: row.memberId })
  return { ...intent, account: opened ?? erasedAccount(row.currency) }
}

type Quoted = Pick<Intent, 'id' | 'memberId' | 'payCycleId' | 'grossAmount' | 'fee' | 'netAmount' | 'currency'>

/** The event of a state change of an intent. */
export function eventOf(
  change: 'created' | 'completed' | 'expired' | 'cancelled',
  { partnerId, intent, now }: { partnerId: string; intent: Quoted; now: Date },
): events.NewEvent {
  const { id, memberId, payCycleId, grossAmount, fee, netAmount, currency } = intent
  return {
    partnerId,
    type: `intent.${change}`,
    resourceId: id,
    // An intent ends once.
    sequence: change === 'created' ? 1 : 2,
    data: {
      withdrawalIntentId: id,
      memberId,
      payCycleId,
      amount: toWire({ amount: grossAmount, currency }),
      fee: toWire({ amount: fee, currency }),
      netAmount: toWire({ amount: netAmount, currency }),
    },
    now,
  }
}
