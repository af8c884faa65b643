import { type Columns, type Db, type Reader, sql, type Tx } from '../../../database/database.ts'
import { asSentence } from '../../../kernel/text.ts'
import type { Restriction } from '../../../members/restrictions.ts'
import { byOneReference, hasReference } from '../../books/by-reference.ts'
import * as exceptions from '../../books/exceptions.ts'
import { type KnownPayout, match } from '../../books/matching.ts'
import { lockRail } from '../../books/rail-lock.ts'
import { reasonInWords, restrictionOf } from '../../books/reasons.ts'
import { addRecord, recordOutcome } from '../../books/reports.ts'
import { findRestore } from '../../books/restores.ts'
import type { PaymentState } from '../../formats/bank-files.ts'
import { isReference } from '../../payments/reference.ts'
import type { AdyenSettings } from './settings.ts'
import type { Transfer, Unreadable } from './transfer.ts'

// What the rail knows of its payments, in payouts, bank_records and payout_exceptions. Withdrawals follow through its reports.

/**
 * A payment as far as the rail has come with it.
 * @property sentAt when the first request was sent; null if none was
 * @property refusedTransfers the bank's ids of earlier transfers, which it refused for lack of money
 * @property retryAt not to be requested again before
 */
export type KnownPayment = Columns<
  'payouts',
  | 'reference'
  | 'netAmount'
  | 'currency'
  | 'sentAt'
  | 'transferId'
  | 'outcome'
  | 'reason'
  | 'restriction'
  | 'refusedTransfers'
  | 'retryAt'
> & {
  /** It waits for approval, or is held. */
  isWaiting: boolean
  /** Whether Adyen may have made it without the books' knowledge, before a restore. */
  mayBeMade: boolean
}

export async function findPayments(db: Reader, rail: string, references: readonly string[]): Promise<KnownPayment[]> {
  const { rows } = await sql<KnownPayment>`
    select p.reference, p.net_amount, p.currency, p.sent_at, p.transfer_id, p.outcome, p.reason, p.restriction,
           p.refused_transfers, p.retry_at,
           coalesce(p.sent_at is null and (b.status = 'building' or (b.status = 'approved' and b.held)), false) as is_waiting,
           ${mayBeMade} as may_be_made
      from payouts p join withdrawals w on w.partner_id = p.partner_id and w.id = p.withdrawal_id
           left join payout_batches b on b.id = p.batch_id
     where p.rail = ${rail} and ${hasReference(references, { of: 'p' })}`.execute(db)
  return rows
}

// A withdrawal of before the restore may be claimed again long after payouts were resumed.
const mayBeMade = sql<boolean>`
  coalesce(p.sent_at is null and w.created_at <= (select max(detected_at) from restores), false)`

/** A request that was sent, and may have made its payment until it is closed. */
export type OpenRequest = {
  reference: string
  /** Earlier transfers that the bank refused for lack of money. */
  refusedCount: number
  openAt: Date
  /** An earlier request whose effect is not known either. */
  earlierOpenAt: Date | null
}

/**
 * Records that a payment is about to be requested, so that a crash leaves none that we do not look for, and so that it is not
 * given back before it is known what the request did.
 * @returns undefined if it must not be requested: the bank has it, or it has ended, for example because it was given back
 */
export async function openRequest(
  db: Db,
  { rail, reference, now }: { rail: string; reference: string; now: Date },
): Promise<OpenRequest | undefined> {
  return await db.transaction().execute(async tx => {
    const isNamed = await byOneReference(tx, reference)
    const { rows } = await sql<Omit<OpenRequest, 'openAt'>>`
      select reference, cardinality(refused_transfers) as refused_count, request_open_at as earlier_open_at from payouts
       where rail = ${rail} and ${isNamed()} and outcome is null and transfer_id is null
         and (sent_at is not null or retry_at is null or retry_at <= ${now})
         for update`.execute(tx)
    const [payout] = rows
    if (payout === undefined) return undefined
    // Concurrent requests must not share an instant, so that each closes only itself.
    const openAt = new Date(Math.max(now.getTime(), (payout.earlierOpenAt?.getTime() ?? 0) + 1))
    await sql`
      update payouts set sent_at = coalesce(sent_at, ${now}), request_open_at = ${openAt} where ${isNamed()}`.execute(
      tx,
    )
    return { ...payout, openAt }
  })
}

/** Records that a request certainly had no effect. An earlier one may still have had one. */
export async function closeRequest(db: Db, { reference, openAt, earlierOpenAt }: OpenRequest): Promise<void> {
  const isNamed = await byOneReference(db, reference)
  await sql`
    update payouts set request_open_at = ${earlierOpenAt}
     where ${isNamed()} and request_open_at = ${openAt}`.execute(db)
}

/** Records that the bank does not have a payment, so requests that were sent until then had no effect. */
export async function closeRequestsUntil(
  db: Db,
  { rail, reference, until }: { rail: string; reference: string; until: Date },
): Promise<void> {
  const isNamed = await byOneReference(db, reference)
  await sql`
    update payouts set request_open_at = null
     where rail = ${rail} and ${isNamed()} and request_open_at <= ${until}`.execute(db)
}

/**
 * Records what the bank says about transfers. Idempotent, and in any order: the highest number of a transfer decides. One
 * without a number is the latest state, unless the payment has ended. What does not fit becomes an exception.
 */
export async function recordTransfers(
  tx: Tx,
  { settings, transfers, now }: { settings: AdyenSettings; transfers: readonly Transfer[]; now: Date },
): Promise<void> {
  const { name: rail, balanceAccountId } = settings
  const ours = transfers.filter(
    each => each.isPayout && (each.balanceAccountId === null || each.balanceAccountId === balanceAccountId),
  )
  if (ours.length === 0) return
  await lockRail(tx, { rail, for: 'records' })
  for (const transfer of ours) await recordTransfer(tx, { rail, transfer, now })
}

type Payout = KnownPayout &
  Columns<
    'payouts',
    'partnerId' | 'withdrawalId' | 'requestOpenAt' | 'refusedTransfers' | 'transferId' | 'transferSequence'
  > & { mayBeMade: boolean }

async function recordTransfer(
  tx: Tx,
  { rail, transfer, now }: { rail: string; transfer: Transfer; now: Date },
): Promise<void> {
  const { id, reference, sequence, amount, reasonCode } = transfer
  const payout = reference === null ? undefined : await lockPayout(tx, { rail, reference })
  const state = stateFor(payout, transfer)
  const openException = async (kind: exceptions.ExceptionKind, reason: string) => {
    const outcome = state === 'accepted' || state === 'pending' ? null : state
    const fingerprint = `${kind} ${id} ${state}`
    await exceptions.open(
      tx,
      [{ rail, kind, fingerprint, reason, reference, payout, outcome, amount, reasonCode }],
      now,
    )
  }
  if (payout === undefined || reference === null) {
    // A transfer that was made by hand from the same account matters once money moves, and one of a withdrawal that a restore has lost
    // before its member withdraws again.
    const isLost = state !== 'failed' && isReference(reference ?? '') && (await findRestore(tx)) !== undefined
    if (isLost || state === 'paid' || state === 'returned')
      await openException('unmatched', `The bank reports a payment that is not ours as ${state}`)
    return
  }
  const isRefusedBefore = payout.refusedTransfers.includes(id)
  if (isRefusedBefore && state !== 'paid' && state !== 'returned') return
  // Another request may be paid, too. Without one, the refusal was not the end after all.
  if (isRefusedBefore && payout.isSent) {
    await openException('duplicate', 'The bank paid a transfer that it had refused; find out whether it paid twice')
    return
  }
  if (isRefusedBefore) {
    await sql`
      update payouts set refused_transfers = array_remove(refused_transfers, ${id}), sent_at = ${now}, retry_at = null
       where ${isPayout(payout)}`.execute(tx)
    await recordTransfer(tx, { rail, transfer, now })
    return
  }
  if (payout.transferId !== null && payout.transferId !== id) {
    if (state !== 'failed')
      await openException('duplicate', 'The bank has a second transfer for the payment; find out whether it paid twice')
    return
  }
  if (isStale(payout, { sequence, state })) return
  // The request was made before the restore.
  if (payout.mayBeMade) {
    await sql`update payouts set sent_at = ${now} where ${isPayout(payout)}`.execute(tx)
    payout.isSent = true
  }
  const matched = match(payout, {
    ...{ state, amount, reasonCodes: reasonCode === null ? [] : [reasonCode], reasonText: null },
  })
  // Only `refused` is certain to be the end of the transfer.
  const isShort = matched.result === 'exception' && matched.kind === 'float' && transfer.status === 'refused'
  if (isShort && payout.outcome === null && payout.refusedTransfers.length < retries.waitsMs.length) {
    await retryLater(tx, { rail, payout, transfer, now })
    return
  }
  if (matched.result === 'exception') {
    await openException(matched.kind, matched.reason)
    // A transfer of another amount is not the one that we asked for, but it is the answer: the operator decides.
    if (matched.kind === 'amount') {
      await sql`update payouts set request_open_at = null where ${isPayout(payout)}`.execute(tx)
      return
    }
  }
  if (payout.transferId === null) await exceptions.closeBlocked(tx, { rail, reference, now })
  await sql`
    update payouts
       set transfer_id = ${id}, transfer_sequence = coalesce(${sequence}::int, transfer_sequence, 0), request_open_at = null
     where ${isPayout(payout)}`.execute(tx)
  if (matched.result !== 'changed') return
  const { outcome } = matched
  if (outcome === 'paid') await exceptions.closeShort(tx, { rail, now })
  const records = { rail, messageId: id, reference, now }
  // The booking was missed: a bank returns only what it has paid.
  if (outcome === 'returned' && payout.outcome === null)
    await addRecord(tx, { ...records, entryKey: `${sequence ?? 'unnumbered'} before`, outcome: 'paid' })
  const entryKey = `${sequence ?? 'unnumbered'} ${transfer.status}`
  const why =
    outcome === 'paid' ? {} : { reasonCode, reason: reasonInWords(reasonCode), restriction: restrictionOf(reasonCode) }
  await recordOutcome(tx, { ...records, entryKey, outcome, ...why })
}

const hourMs = 3_600_000
const retries = {
  // A morning's top-up arrives within a working day; after that an operator decides.
  waitsMs: [hourMs, 2 * hourMs, 4 * hourMs, 8 * hourMs],
}

type RefusedTransfer = { rail: string; payout: Payout; transfer: Transfer; now: Date }

/** Requests a payment again later, as another transfer, since the paying account lacked the money. The operator is told once. */
async function retryLater(tx: Tx, { rail, payout, transfer: { id, reasonCode }, now }: RefusedTransfer): Promise<void> {
  const waitMs = retries.waitsMs[payout.refusedTransfers.length] ?? 0
  await sql`
    update payouts
       set refused_transfers = array_append(refused_transfers, ${id}), retry_at = ${new Date(now.getTime() + waitMs)}, sent_at = null,
           request_open_at = null, transfer_id = null, transfer_sequence = null
     where ${isPayout(payout)}`.execute(tx)
  await exceptions.openShort(tx, { rail, reasonCode, now })
}

/**
 * Whether a later state of the transfer is known. A look-up without a number gives the state of now; it may be late, but
 * nothing follows the end of a payment except a return.
 */
function isStale(
  { outcome, transferSequence }: Payout,
  { sequence, state }: { sequence: number | null; state: PaymentState },
): boolean {
  if (sequence === null) return outcome !== null && state !== 'returned'
  return transferSequence !== null && sequence <= transferSequence
}

/** An instant payment can be booked and then fail: the money was gone and has come back, which is a return. */
function stateFor(payout: Payout | undefined, { state }: Transfer): PaymentState {
  return state === 'failed' && (payout?.outcome === 'paid' || payout?.outcome === 'returned') ? 'returned' : state
}

/** SQL: a row of `payouts` is one that was locked. */
function isPayout({ partnerId, withdrawalId }: Payout) {
  return sql`partner_id = ${partnerId} and withdrawal_id = ${withdrawalId}`
}

async function lockPayout(
  tx: Tx,
  { rail, reference }: { rail: string; reference: string },
): Promise<Payout | undefined> {
  const isNamed = await byOneReference(tx, reference)
  const { rows } = await sql<Payout>`
    select p.partner_id, p.withdrawal_id, p.net_amount, p.currency, p.outcome, p.sent_at is not null as is_sent,
           p.removed_at is not null as is_removed, p.request_open_at, p.refused_transfers, p.transfer_id, p.transfer_sequence,
           ${mayBeMade} as may_be_made
      from payouts p join withdrawals w on w.partner_id = p.partner_id and w.id = p.withdrawal_id
     where p.rail = ${rail} and ${isNamed('p')} for update of p`.execute(tx)
  return rows[0]
}

type FailedPayment = {
  rail: string
  reference: string
  reasonCode: string | null
  reason: string
  restriction: Restriction | null
  now: Date
}

/**
 * Ends a payment that was not made, with the reason. Does nothing if it has ended already, or the bank has it or may have it.
 * @param reasonCode the bank's, verbatim; null if we have not asked it
 */
export async function recordFailure(
  tx: Tx,
  { rail, reference, reasonCode, reason, restriction, now }: FailedPayment,
): Promise<void> {
  await lockRail(tx, { rail, for: 'records' })
  const payout = await lockPayout(tx, { rail, reference })
  if (payout === undefined || payout.outcome !== null) return
  if (payout.transferId !== null || payout.requestOpenAt !== null) return
  await exceptions.closeBlocked(tx, { rail, reference, now })
  const ended = { rail, reference, messageId: 'refused', entryKey: reference, now }
  await recordOutcome(tx, { ...ended, outcome: 'failed', reasonCode, reason, restriction })
}

type BlockedPayment = { rail: string; reference?: string | null; code: string; reason: string; now: Date }

/** Opens an exception for what holds a payment back, or every payment of the rail; once per payment, or per hour. */
export async function openBlocked(
  tx: Tx,
  { rail, reference = null, code, reason, now }: BlockedPayment,
): Promise<void> {
  const payout = reference === null ? undefined : await lockPayout(tx, { rail, reference })
  const fingerprint = `blocked ${code} ${reference ?? now.toISOString().slice(0, 13)}`
  await exceptions.open(tx, [{ rail, kind: 'blocked', fingerprint, reason, reference, payout, reasonCode: code }], now)
}

// More are only logged: a new format of the bank must not fill the list.
const unreadableMax = 100

type UnreadableMessages = {
  rail: string
  what: 'notification' | 'transfer in a listing'
  all: readonly Unreadable[]
  now: Date
}

/** Opens an exception for each thing that cannot be read, once per content. */
export async function openUnreadable(tx: Tx, { rail, what, all, now }: UnreadableMessages): Promise<void> {
  if (all.length === 0) return
  const room = unreadableMax - (await exceptions.countOpenOf(tx, { rail, kind: 'unreadable', countMax: unreadableMax }))
  for (const { why, sha256, transferId, reference } of all.slice(0, room)) {
    const payout = reference === null ? undefined : await lockPayout(tx, { rail, reference })
    const named = transferId === null ? '' : ` It is about the transfer ${transferId}.`
    const reason = `A ${what} cannot be read.${named} ${asSentence(why)} SHA-256 of its content: ${sha256}`
    await exceptions.open(
      tx,
      [{ rail, kind: 'unreadable', fingerprint: `unreadable ${sha256}`, reason, reference, payout }],
      now,
    )
  }
}

/** Opens an exception because payments cannot be listed, so that returns may be missed. Does nothing while there is one. */
export async function openListing(
  tx: Tx,
  { rail, reason, now }: { rail: string; reason: string; now: Date },
): Promise<void> {
  const reasonCode = exceptions.listingCode
  const fingerprint = `blocked ${reasonCode} ${now.toISOString().slice(0, 13)}`
  if ((await exceptions.countOpenOf(tx, { rail, kind: 'blocked', reasonCode, countMax: 1 })) > 0) return
  await exceptions.open(tx, [{ rail, kind: 'blocked', fingerprint, reason, reasonCode }], now)
}

/** When the oldest payment was first requested whose outcome is not known; null if there is none. */
export async function findOldestOpen(db: Reader, rail: string): Promise<Date | null> {
  const { rows } = await sql<{ sentAt: Date | null }>`
    select min(sent_at) as sent_at from payouts where rail = ${rail} and outcome is null`.execute(db)
  return rows[0]?.sentAt ?? null
}
