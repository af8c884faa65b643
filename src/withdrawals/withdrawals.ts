import type { RawBuilder } from 'kysely'
import type { BankAccount } from '../bank-accounts/rules.ts'
import { erasedAccount } from '../bank-accounts/rules.ts'
import { openAccount, requireAccount, type StoredAccount } from '../bank-accounts/sealed-account.ts'
import { cachedSql } from '../database/cached-sql.ts'
import { type Cursor, isBeyond, newestFirst, readingOrder, requireKnown } from '../database/cursor.ts'
import { type Page, type Reader, sql, type Tx } from '../database/database.ts'
import { onOnePartner } from '../database/one-partner.ts'
import * as events from '../events/events.ts'
import * as fees from '../fees/fees.ts'
import { problem } from '../kernel/errors.ts'
import { firstId, firstIdSince } from '../kernel/ids.ts'
import { type Currency, type Money, toWire } from '../kernel/money.ts'
import * as ledger from '../ledger/ledger.ts'
import { lockMembers } from '../members/locks.ts'
import { type Restriction, restrict } from '../members/restrictions.ts'
import { paymentKeyOf } from '../members/sealing.ts'
import { hasMetadata, type Metadata, metadataOf } from '../metadata/metadata.ts'
import * as payCycles from '../pay-cycles/pay-cycles.ts'
import { noOpenCycle } from '../pay-cycles/rules.ts'
import { sealerOf } from '../sealing/held.ts'
import type { PayoutSpeed } from '../tiers/terms.ts'
import { constantOf, inScope, type Scope } from '../worker/task.ts'
import { transfersOnEntering, transfersOnRecovering } from './bookings.ts'
import * as intents from './intents.ts'
import {
  canTransition,
  deductedStatuses,
  type FinalOutcome,
  returnsFunds,
  transitionsFor,
  type UnfinishedStatus,
  type WithdrawalStatus,
} from './lifecycle.ts'

export type Withdrawal = {
  id: string
  memberId: string
  payCycleId: string
  status: WithdrawalStatus
  currency: Currency
  /** Leaves the member's pay: the net amount and the member's fee. */
  grossAmount: bigint
  netAmount: bigint
  fee: bigint
  createdAt: Date
}

/** Polls without a final report after which a withdrawal counts as stuck: by then some hours have passed. */
export const attemptsQuietMax = 8

/**
 * Cancels a withdrawal that has not been submitted yet, and returns the money to the member. Idempotent.
 * @returns whether it was held until now
 * @throws Problem `NotFound`, `Conflict` once it is submitted
 */
export async function cancel(
  tx: Tx,
  { partnerId, withdrawalId, now }: { partnerId: string; withdrawalId: string; now: Date },
): Promise<boolean> {
  const withdrawal = await lockWithFunds(tx, { partnerId, withdrawalId })
  if (withdrawal.status === 'cancelled') return false
  if (!canTransition(withdrawal.status, 'cancelled')) {
    throw problem('Conflict', `The withdrawal is ${withdrawal.status}; only a held one can be cancelled`)
  }
  await transition(tx, withdrawal, { to: 'cancelled', reason: 'Cancelled by the partner', now })
  return true
}

/** A withdrawal as the bank needs it. */
export type Payout = {
  partnerId: string
  withdrawalId: string
  /** Our end-to-end reference at the bank. */
  reference: string
  netAmount: Money
  account: BankAccount
  /** The speed that the tier asked for when the withdrawal was quoted; absent if the rail decides. */
  speed?: PayoutSpeed
  /** Calls to the bank about it, including the one it was claimed for. */
  attempts: number
}

/** A withdrawal that was claimed for the bank; without its account if that is lost with its key. */
export type Claimed = Omit<Payout, 'account'> & { account: BankAccount | null }

/** Whether a claimed withdrawal can be submitted. The bank can be asked about the others; otherwise an operator records their outcome. */
export function hasAccount(claimed: Claimed): claimed is Payout {
  return claimed.account !== null
}

/**
 * Which withdrawals a worker claims for the bank.
 * @param nextPollAt when to poll the bank about a withdrawal, by the number of earlier calls. The lease of the claim ends then,
 * and another worker takes over
 */
type Claiming = { now: Date; countMax: number; nextPollAt: (attempts: number) => Date; scope?: Scope | undefined }

/** Gives claimed withdrawals their references at the bank, by withdrawal id. */
type NameForBank = (tx: Tx, claimed: Omit<Claimed, 'reference'>[]) => Promise<Map<string, string>>

type Submitting = Claiming & { currencies?: readonly Currency[] | undefined; nameForBank: NameForBank }

/**
 * Claims held withdrawals whose hold is over, oldest first, and marks them as submitted: from here on they cannot be
 * cancelled. Skips rows that another worker has locked. The caller commits, and then calls the bank.
 * @param currencies the currencies that the bank pays; undefined for all
 */
export async function submitDue(
  tx: Tx,
  { now, countMax, nextPollAt, scope, currencies, nameForBank }: Submitting,
): Promise<Claimed[]> {
  const ofRail = currencies === undefined ? sql`` : sql`and w.currency = any(${[...currencies]}::text[])`
  const due = await lockDue(tx, { status: 'held', now, countMax, scope, ofRail })
  if (due.length === 0) return []
  await setClaimed(tx, { due, nextPollAt })
  const claimed = due.map(each => toPayout(tx, each))
  const references = await nameForBank(tx, claimed)
  const payouts = claimed.map(payout => ({ ...payout, reference: referenceOf(payout, references) }))
  for (const [index, { partnerId, ...withdrawal }] of due.entries()) {
    const paymentReference = payouts[index]?.reference
    await events.emit(tx, eventOf('submitted', { partnerId, withdrawal, paymentReference, now }))
  }
  return payouts
}

/**
 * Claims submitted withdrawals that are due to be polled. The caller commits, and then polls the bank.
 * @param rail the rail that they were submitted to
 */
export async function claimUnresolved(
  tx: Tx,
  { now, countMax, nextPollAt, scope, rail }: Claiming & { rail: string },
): Promise<Claimed[]> {
  const ofRail = sql`and p.rail = ${rail}`
  const due = await lockDue(tx, { status: 'submitted', now, countMax, scope, ofRail })
  await setClaimed(tx, { due, nextPollAt })
  return due.map(each => ({ ...toPayout(tx, each), reference: each.reference ?? throwNoReference(each) }))
}

function referenceOf({ withdrawalId: id }: Omit<Claimed, 'reference'>, references: Map<string, string>): string {
  return references.get(id) ?? throwNoReference({ id })
}

function throwNoReference({ id }: { id: string }): never {
  throw new Error(`${id} has no reference`)
}

/**
 * Brings the next step with the bank forward: ends the hold, or the wait for the next poll. A withdrawal without a next step is
 * unchanged.
 */
export async function bringForward(
  tx: Tx,
  { partnerId, withdrawalId, now }: { partnerId: string; withdrawalId: string; now: Date },
): Promise<void> {
  await sql`
    update withdrawals set due_at = ${now}
     where partner_id = ${partnerId} and id = ${withdrawalId} and due_at > ${now}`.execute(tx)
}

/** The effect of a bank report: it changed the withdrawal, was known already, or contradicts an earlier one. */
export type ReportEffect = {
  result: 'changed' | 'known' | 'contradiction'
  from: WithdrawalStatus
  to: WithdrawalStatus
}

type BankReport = {
  partnerId: string
  withdrawalId: string
  outcome: FinalOutcome
  reason: string | null
  restriction?: Restriction | null
  recoveryId?: string | null
  now: Date
}

/**
 * Applies a bank report to a withdrawal. Idempotent: a transition starts from one state only. A contradiction changes
 * nothing; the caller reports it to the operator.
 * @param reason in the words of the bank
 * @param restriction the restriction of the member that follows from the reason
 * @param recoveryId the last decision before this report to recover the payment (`recover`); null if there is none. Once a
 * decision is carried out, reports from before that decision are stale and change nothing
 * @throws Problem `NotFound`; `UnprocessableEntity` if money is to be returned while no pay cycle is open
 */
export async function applyBankReport(
  tx: Tx,
  { partnerId, withdrawalId, outcome, reason, restriction = null, recoveryId = null, now }: BankReport,
): Promise<ReportEffect> {
  const withdrawal =
    returnsFunds(outcome) || recoveryId !== null
      ? await lockWithFunds(tx, { partnerId, withdrawalId })
      : await lock(tx, { partnerId, withdrawalId })
  const from = withdrawal.status
  if (recoveryId !== withdrawal.recoveredBy) {
    if (recoveryId === null || outcome !== 'paid' || (await isRecoveredBy(tx, { partnerId, withdrawalId, recoveryId })))
      return { result: 'known', from, to: from }
    return await recover(tx, withdrawal, { recoveryId, reason: reason === null ? null : storable(reason), now })
  }
  const steps = transitionsFor(from, outcome)
  for (const to of steps ?? []) {
    await transition(tx, withdrawal, {
      to,
      reason: to === outcome && reason !== null ? storable(reason) : null,
      now,
    })
  }
  const to = steps?.at(-1) ?? from
  if (restriction !== null && steps !== null && steps.length > 0 && returnsFunds(outcome)) {
    const { memberId, withdrawalIntentId: intentId } = withdrawal
    const { account } = await intents.find(tx, { partnerId, intentId })
    const why = reason === null ? 'The bank gave no reason' : storable(reason)
    await restrict(tx, { partnerId, memberId, restriction, account, reason: why })
  }
  return { result: steps === null ? 'contradiction' : steps.length === 0 ? 'known' : 'changed', from, to }
}

// In the books. A withdrawal that is paid without a recovery has `withdrawal.paid`.
const recoveredReason = 'withdrawal.recovered'

/** Whether a decision that recovers a withdrawal has been carried out. */
async function isRecoveredBy(
  tx: Tx,
  { partnerId, withdrawalId, recoveryId }: { partnerId: string; withdrawalId: string; recoveryId: string },
): Promise<boolean> {
  const found = await tx
    .selectFrom('withdrawalRecoveries')
    .select('takenAmount')
    .where('partnerId', '=', partnerId)
    .where('withdrawalId', '=', withdrawalId)
    .where('exceptionId', '=', recoveryId)
    .executeTakeFirst()
  return found !== undefined
}

/**
 * Takes a withdrawal from the member again when the bank paid it after its money was given back: from the available balance
 * first, and the rest is owed. Booked in the open cycle, because the deductions of a closed cycle never change.
 */
async function recover(
  tx: Tx,
  withdrawal: Locked,
  { recoveryId, reason, now }: { recoveryId: string; reason: string | null; now: Date },
): Promise<ReportEffect> {
  const { partnerId, id, memberId, status, openCycleId, currency, grossAmount, adjustedInCycleId, payCycleId } =
    withdrawal
  const effect = { from: status, to: 'paid' as const }
  if (status === 'held' || status === 'cancelled') return { ...effect, result: 'contradiction', to: status }
  const recovery = { partnerId, withdrawalId: id, exceptionId: recoveryId, fromStatus: status, recoveredAt: now }
  const ofThis = tx.updateTable('withdrawals').where('partnerId', '=', partnerId).where('id', '=', id)
  if (!returnsFunds(status)) {
    // The bank's report of the failure or return was not applied, so there is nothing to take.
    await tx
      .insertInto('withdrawalRecoveries')
      .values({ ...recovery, takenAmount: 0n })
      .execute()
    await ofThis.set({ recoveredBy: recoveryId }).execute()
    if (status === 'submitted') await transition(tx, withdrawal, { to: 'paid', reason, now })
    return { ...effect, result: status === 'paid' ? 'known' : 'changed' }
  }
  if (openCycleId === null) throw noOpenCycle()
  const available = await ledger.availableOf(tx, { partnerId, memberId, currency, payCycleId: openCycleId })
  const takenAmount = available < grossAmount ? available : grossAmount
  const cycles = { givenBackInCycleId: adjustedInCycleId ?? payCycleId, payCycleId: openCycleId }
  await tx
    .insertInto('withdrawalRecoveries')
    .values({ ...recovery, ...cycles, takenAmount })
    .execute()
  const { finalsBefore } = await ofThis
    .set({ status: 'paid', dueAt: null, earlierReasons, reason, adjustedInCycleId: null, recoveredBy: recoveryId })
    .returning(finalsBeforeThis)
    .executeTakeFirstOrThrow()
  await ledger.post(tx, {
    partnerId,
    movementId: id,
    reason: recoveredReason,
    transfers: transfersOnRecovering(withdrawal, { taken: takenAmount, payCycleId: openCycleId }),
    now,
  })
  await events.emit(tx, eventOf('paid', { partnerId, withdrawal, finalsBefore, reason, now }))
  return { ...effect, result: 'changed' }
}

// PostgreSQL refuses NUL and lone surrogates, and a report that cannot be stored would block all reports after it.
function storable(reason: string): string {
  return [...reason.toWellFormed().replaceAll('\0', '')].slice(0, reasonLengthMax).join('')
}

// ISO 20022 allows 105 characters.
const reasonLengthMax = 140

/** The instants at which the holds of a partner's withdrawals end. */
export const dueSubmissions = ({ partnerId }: { partnerId: string }) => sql<{ at: Date; work: number }>`
  select due_at as at, 1 as work from unpaid_withdrawals
   where partner_id = ${partnerId} and status = 'held'`

// A withdrawal about which the bank has been silent for hours is polled every hour. A clock that is moved by months polls once a day, which
// changes nothing for the partner and saves thousands of steps.
const quietPollDays = 1

/** The instants at which a partner's submitted withdrawals are polled while its clock is moved. */
export const duePolls = ({ partnerId, now }: { partnerId: string; now: Date }) => sql<{ at: Date; work: number }>`
  select case when w.attempts > ${attemptsQuietMax} and w.due_at > ${now}
              then greatest(w.due_at, ${now}::timestamptz + make_interval(days => ${quietPollDays}))
              else w.due_at end as at, 1 as work
    from unpaid_withdrawals u join withdrawals w on w.partner_id = u.partner_id and w.id = u.withdrawal_id
   where u.partner_id = ${partnerId} and u.status = 'submitted'`

type WithdrawalRow = Withdrawal & {
  partnerId: string
  withdrawalIntentId: string
  employerFee: bigint
}

/** A locked withdrawal, with the open pay cycle that a refund or recovery is booked in. */
type Locked = WithdrawalRow & {
  openCycleId: string | null
  adjustedInCycleId: string | null
  recoveredBy: string | null
}

// Moves a locked withdrawal to another state: status and reason, transfers, event.
async function transition(
  tx: Tx,
  withdrawal: Locked,
  { to, reason, now }: { to: WithdrawalStatus; reason: string | null; now: Date },
): Promise<void> {
  const { partnerId, id, openCycleId } = withdrawal
  if (returnsFunds(to) && openCycleId === null) {
    throw noOpenCycle()
  }
  const adjustedInCycleId = returnsFunds(to) && openCycleId !== withdrawal.payCycleId ? openCycleId : null
  const { finalsBefore } = await tx
    .updateTable('withdrawals')
    .set({ status: to, dueAt: null, earlierReasons, reason, adjustedInCycleId })
    .where('partnerId', '=', partnerId)
    .where('id', '=', id)
    .returning(finalsBeforeThis)
    .executeTakeFirstOrThrow()
  await ledger.post(tx, {
    partnerId,
    movementId: id,
    reason: `withdrawal.${to}`,
    transfers: transfersOnEntering(to, withdrawal, adjustedInCycleId ?? withdrawal.payCycleId),
    now,
  })
  if (returnsFunds(to) && withdrawal.fee > 0n) await fees.release(tx, { partnerId, withdrawalId: id, now })
  await events.emit(tx, eventOf(to, { partnerId, withdrawal, finalsBefore, reason, now }))
}

// Keeps the reason of a final state, which has no due time, when another one follows.
const earlierReasons = sql<string[]>`
  case when due_at is null then array_append(earlier_reasons, reason) else earlier_reasons end`
const finalsBeforeThis = sql<number>`cardinality(earlier_reasons)`.as('finalsBefore')

async function lockWithFunds(
  tx: Tx,
  { partnerId, withdrawalId }: { partnerId: string; withdrawalId: string },
): Promise<Locked> {
  const { memberId } = await select(tx, { partnerId, withdrawalId }).executeTakeFirstOrThrow(notFound)
  const open = await payCycles.holdOpen(tx, partnerId)
  await lockMembers(tx, { partnerId, memberIds: [memberId] })
  return { ...(await lock(tx, { partnerId, withdrawalId })), openCycleId: open?.id ?? null }
}

async function lock(tx: Tx, { partnerId, withdrawalId }: { partnerId: string; withdrawalId: string }): Promise<Locked> {
  const row = await select(tx, { partnerId, withdrawalId }).forUpdate().executeTakeFirstOrThrow(notFound)
  return { ...row, openCycleId: null }
}

function select(db: Reader, { partnerId, withdrawalId }: { partnerId: string; withdrawalId: string }) {
  return db
    .selectFrom('withdrawals')
    .select(['partnerId', 'id', 'withdrawalIntentId', 'memberId', 'payCycleId', 'status', 'currency'])
    .select(['grossAmount', 'netAmount', 'fee', 'employerFee', 'createdAt'])
    .select(['adjustedInCycleId', 'recoveredBy'])
    .where('partnerId', '=', partnerId)
    .where('id', '=', withdrawalId)
}

const notFound = () => problem('NotFound', 'There is no such withdrawal')

type Due = WithdrawalRow &
  StoredAccount & {
    attempts: number
    /** Null before it is submitted. */
    reference: string | null
    /** The speed in the version of the tier that the withdrawal was quoted with. */
    payoutSpeed: PayoutSpeed | null
  }

type DueAt = {
  status: UnfinishedStatus
  now: Date
  countMax: number
  scope: Scope | undefined
  ofRail: RawBuilder<unknown>
}

async function lockDue(tx: Tx, { status, now, countMax, scope, ofRail }: DueAt): Promise<Due[]> {
  const { rows } = await sql<Due>`
    select w.partner_id, w.id, w.withdrawal_intent_id, w.member_id, w.pay_cycle_id, w.status, w.currency,
           w.gross_amount, w.net_amount, w.fee, w.employer_fee, w.created_at, w.attempts,
           i.account, ${paymentKeyOf('w', { memberId: 'member_id', partnerId: constantOf(scope) })} as payment_key, p.reference, v.payout_speed
      from unpaid_withdrawals u
      join withdrawals w on w.partner_id = u.partner_id and w.id = u.withdrawal_id
      join withdrawal_intents i on i.partner_id = w.partner_id and i.id = w.withdrawal_intent_id
      left join payouts p on p.partner_id = w.partner_id and p.withdrawal_id = w.id
      left join tier_versions v on v.partner_id = i.partner_id and v.tier = i.tier and v.version = i.tier_version
     where u.status = ${status} and u.due_at <= ${now} ${inScope(scope, sql`u.partner_id`)} ${ofRail}
           -- Checked again once the row is locked: another worker may have claimed it since. In one expression, because the planner would
           -- multiply the rarities of both columns, and sort all due withdrawals instead of reading the first ones.
           and case when w.status = ${status} then w.due_at end <= ${now}
     order by u.due_at
     limit ${countMax}
       for update of w skip locked`.execute(tx)
  return rows
}

// The due time is the end of the lease: other workers skip these until then.
async function setClaimed(
  tx: Tx,
  { due, nextPollAt }: { due: Due[]; nextPollAt: Claiming['nextPollAt'] },
): Promise<void> {
  await sql`
    update withdrawals w set status = 'submitted', attempts = w.attempts + 1, due_at = claimed.due_at
      from unnest(${due.map(({ partnerId }) => partnerId)}::text[], ${due.map(({ id }) => id)}::text[],
                  ${due.map(({ attempts }) => nextPollAt(attempts))}::timestamptz[])
        as claimed (partner_id, id, due_at)
     where w.partner_id = claimed.partner_id and w.id = claimed.id`.execute(tx)
}

function toPayout(
  db: Reader,
  { partnerId, id, memberId, netAmount, currency, attempts, payoutSpeed, ...stored }: Due,
): Omit<Claimed, 'reference'> {
  const account = stored.paymentKey === null ? null : requireAccount(db, stored, { partnerId, memberId })
  const payout = { partnerId, withdrawalId: id, netAmount: { amount: netAmount, currency }, account }
  return { ...payout, ...(payoutSpeed === null ? {} : { speed: payoutSpeed }), attempts: attempts + 1 }
}

type WithdrawalChange = {
  partnerId: string
  withdrawal: Omit<WithdrawalRow, 'partnerId' | 'status'>
  /** The final states before this one. */
  finalsBefore?: number
  reason?: string | null
  paymentReference?: string | undefined
  now: Date
}

/** The event of entering a state. */
export function eventOf(
  status: WithdrawalStatus,
  { partnerId, withdrawal, finalsBefore = 0, reason, paymentReference, now }: WithdrawalChange,
): events.NewEvent {
  const { id, withdrawalIntentId, memberId, payCycleId, grossAmount, fee, netAmount, currency } = withdrawal
  return {
    partnerId,
    type: `withdrawal.${status}`,
    resourceId: id,
    sequence: { held: 1, submitted: 2, cancelled: 2, paid: 3, failed: 3, returned: 3 }[status] + finalsBefore,
    data: {
      withdrawalId: id,
      withdrawalIntentId,
      memberId,
      payCycleId,
      amount: toWire({ amount: grossAmount, currency }),
      fee: toWire({ amount: fee, currency }),
      netAmount: toWire({ amount: netAmount, currency }),
      ...(reason ? { reason } : {}),
      ...(paymentReference ? { paymentReference } : {}),
    },
    now,
  }
}

/** A state that a withdrawal has entered, when, and why. */
type TimelineEntry = { status: WithdrawalStatus; at: Date; reason: string | null }

export type Details = Withdrawal & {
  withdrawalIntentId: string
  account: BankAccount
  /** The member's available balance after it was booked. */
  balanceAfter: bigint
  /** Oldest first. */
  timeline: TimelineEntry[]
  /** When the next step with the bank is due; null in a final state. */
  dueAt: Date | null
  /** Our end-to-end reference at the bank; null before it is submitted. */
  reference: string | null
  /** When the money should be in the account, by the calendar of the rail; null if the rail has none. */
  expectedAt: Date | null
  /** The metadata of its intent. */
  metadata: Metadata
}

/** @throws Problem `NotFound`, also for another partner's withdrawal */
export async function find(db: Reader, asked: { partnerId: string; withdrawalId: string }): Promise<Details> {
  const details = (await findAll(db, [asked])).get(asked.withdrawalId)
  if (details === undefined) throw notFound()
  return details
}

/** @throws Problem `NotFound`, also for the withdrawal of another member or partner */
export async function findOwn(
  db: Reader,
  { memberId, ...asked }: { partnerId: string; withdrawalId: string; memberId: string },
): Promise<Details> {
  const details = await find(db, asked)
  if (details.memberId !== memberId) throw notFound()
  return details
}

/** Maps the ids of the withdrawals that exist to their details. */
export async function findAll(
  db: Reader,
  asked: { partnerId: string; withdrawalId: string }[],
): Promise<Map<string, Details>> {
  const [since] = asked.map(({ withdrawalId }) => firstIdSince('transfer', withdrawalId)).toSorted()
  if (since === undefined) return new Map()
  // One statement, so that the state and the timeline are from one snapshot.
  const { rows } = await cachedSql<
    Omit<Due, 'attempts'> & {
      balanceAfter: bigint
      dueAt: Date | null
      expectedAt: Date | null
      metadata: Metadata
    } & Progress
  >`
    select w.partner_id, w.id, w.withdrawal_intent_id, w.member_id, w.pay_cycle_id, w.status, w.currency,
           w.gross_amount, w.net_amount, w.fee, w.employer_fee, w.created_at, w.balance_after, w.due_at,
           w.reason, w.earlier_reasons, i.account, k.payment_key,
           p.reference, p.created_at as submitted_at, p.expected_at,
           coalesce((select json_object_agg(m.key, m.value order by m.position) from metadata m
                      where m.partner_id = w.partner_id and m.resource_id = w.withdrawal_intent_id
                            ${onOnePartner('m', asked)}), '{}') as metadata,
           (select jsonb_agg(jsonb_build_object('reason', t.reason, 'at', t.created_at)
                             order by t.reason <> 'withdrawal.held', t.reason <> 'withdrawal.paid', t.member_sequence)
              from ledger_transfers t
             where t.partner_id = w.partner_id and t.movement_id = w.id and t.reason like 'withdrawal.%'
                   and t.id >= ${since}
                   ${onOnePartner('t', asked)}) as transfers
      from unnest(${asked.map(({ partnerId }) => partnerId)}::text[], ${asked.map(({ withdrawalId }) => withdrawalId)}::text[])
             as asked (partner_id, id)
      join withdrawals w on w.partner_id = asked.partner_id and w.id = asked.id ${onOnePartner('w', asked)}
      join withdrawal_intents i on i.partner_id = w.partner_id and i.id = w.withdrawal_intent_id
           ${onOnePartner('i', asked)}
      left join member_keys k on k.partner_id = w.partner_id and k.member_id = w.member_id ${onOnePartner('k', asked)}
      left join payouts p on p.partner_id = w.partner_id and p.withdrawal_id = w.id ${onOnePartner('p', asked)}`.execute(
    db,
  )
  return new Map(
    rows.map(({ submittedAt, earlierReasons: earlier, reason, transfers, account: sealed, paymentKey, ...columns }) => {
      const opened = openAccount(sealerOf(db), { account: sealed, paymentKey }, columns)
      const account = opened ?? erasedAccount(columns.currency)
      const { createdAt } = columns
      const timeline = timelineOf({ createdAt, submittedAt, earlierReasons: earlier, reason, transfers })
      return [columns.id, { ...columns, account, timeline }]
    }),
  )
}

/** What a withdrawal's timeline is made of. */
type Progress = {
  createdAt: Date
  submittedAt: Date | null
  /** Why it entered its final states. */
  earlierReasons: (string | null)[]
  reason: string | null
  /** Those of entering a state, in the order in which they were booked. Null if they are detached. */
  transfers: { reason: string; at: string }[] | null
}

/** Every state but `submitted` is entered with transfers, and none is entered twice in a row. Without those that are detached. */
function timelineOf({ createdAt, submittedAt, earlierReasons: earlier, reason, transfers }: Progress): TimelineEntry[] {
  const final = (transfers ?? []).filter(
    (each, index, all) => each.reason !== 'withdrawal.held' && each.reason !== all[index - 1]?.reason,
  )
  const reasons = [...earlier, reason].slice(-final.length)
  return [
    { status: 'held', at: createdAt, reason: null },
    ...(submittedAt === null ? [] : [{ status: 'submitted' as const, at: submittedAt, reason: null }]),
    ...final.map(({ reason: booked, at }, index) => ({
      status: statusBookedAs(booked),
      at: new Date(at),
      reason: reasons[index] ?? null,
    })),
  ]
}

/** The state whose transfers have this reason in the books. */
export function statusBookedAs(reason: string): WithdrawalStatus {
  return reason === recoveredReason ? 'paid' : (reason.replace('withdrawal.', '') as WithdrawalStatus)
}

/** `statuses` defaults to `deductedStatuses`. */
export type WithdrawalFilter = {
  memberId?: string
  payCycleId?: string
  from?: Date
  before?: Date
  statuses?: WithdrawalStatus[]
  metadata?: Metadata
}

type Listing = { partnerId: string; filter: WithdrawalFilter; page: Page; cursor: Cursor | undefined }

/**
 * Newest first. `from` is inclusive, `before` exclusive.
 * @throws Problem `NotFound` if the cursor is unknown or another partner's
 */
export async function list(db: Reader, listing: Listing): Promise<Withdrawal[]> {
  await requireKnown(db, 'withdrawals', listing)
  return newestFirst(await pageOf(db, listing).execute(), listing.cursor)
}

/** Like `list`, with when and why each withdrawal entered its status. */
export async function listWithChanges(
  db: Reader,
  listing: Listing,
): Promise<(Withdrawal & { changedAt: Date; reason: string | null; metadata: Metadata })[]> {
  await requireKnown(db, 'withdrawals', listing)
  const rows = await db
    .selectFrom(pageOf(db, listing).select(['reason', 'partnerId', 'withdrawalIntentId']).as('w'))
    .select([
      'id',
      'memberId',
      'payCycleId',
      'status',
      'currency',
      'grossAmount',
      'netAmount',
      'fee',
      'createdAt',
      'reason',
    ])
    .select(
      // An unfinished withdrawal has only the transfers of being held; those of a finished one may be detached.
      sql<Date>`coalesce(
        case when w.status not in ('held', 'submitted') then (
          select max(t.created_at) from ledger_transfers t
           where t.partner_id = ${listing.partnerId} and t.movement_id = w.id and t.reason like 'withdrawal.%') end,
        case when w.status <> 'held' then (
          select p.created_at from payouts p where p.partner_id = ${listing.partnerId} and p.withdrawal_id = w.id) end,
        w.created_at)`.as('changedAt'),
    )
    .select(metadataOf({ partnerId: listing.partnerId, resourceId: sql`w.withdrawal_intent_id` }).as('metadata'))
    .orderBy('id', readingOrder(listing.cursor))
    .execute()
  return newestFirst(rows, listing.cursor)
}

function pageOf(db: Reader, { partnerId, filter, page, cursor }: Listing) {
  const all = filtered(db, { partnerId, filter })
  return (cursor === undefined ? all : all.where(isBeyond(cursor)))
    .select(['id', 'memberId', 'payCycleId', 'status', 'currency', 'grossAmount', 'netAmount', 'fee', 'createdAt'])
    .orderBy('id', readingOrder(cursor))
    .offset(page.skip)
    .limit(page.take)
}

export async function count(
  db: Reader,
  { partnerId, filter }: { partnerId: string; filter: WithdrawalFilter },
): Promise<number> {
  const { total } = await filtered(db, { partnerId, filter })
    .select(sql<number>`count(*)::integer`.as('total'))
    .executeTakeFirstOrThrow()
  return total
}

function filtered(
  db: Reader,
  {
    partnerId,
    filter: { memberId, payCycleId, from, before, statuses, metadata = {} },
  }: { partnerId: string; filter: WithdrawalFilter },
) {
  return db
    .selectFrom('withdrawals')
    .where('partnerId', '=', partnerId)
    .where(hasStatus(statuses ?? deductedStatuses))
    .where(
      hasMetadata(metadata, {
        partnerId,
        kind: 'withdrawal_intent',
        resourceId: sql`withdrawals.withdrawal_intent_id`,
      }),
    )
    .$if(memberId !== undefined, query => query.where('memberId', '=', memberId ?? ''))
    .$if(payCycleId !== undefined, query => query.where('payCycleId', '=', payCycleId ?? ''))
    .$if(from !== undefined, query => query.where('id', '>=', firstId('withdrawal', from ?? new Date(0))))
    .$if(before !== undefined, query => query.where('id', '<', firstId('withdrawal', before ?? new Date(0))))
}

/** SQL condition on the status of `withdrawals`. Nearly all are paid; the others are found in a separate table. */
export function hasStatus(statuses: readonly WithdrawalStatus[]) {
  const among = sql`status in (${sql.join(statuses)})`
  if (statuses.includes('paid')) return sql<boolean>`${among}`
  return sql<boolean>`exists (select from unpaid_withdrawals u
                               where u.partner_id = withdrawals.partner_id and u.withdrawal_id = withdrawals.id and u.${among})`
}
