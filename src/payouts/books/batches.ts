import assert from 'node:assert/strict'
import { lastFour } from '../../bank-accounts/rules.ts'
import { openAccount, type StoredAccount } from '../../bank-accounts/sealed-account.ts'
import { type Columns, type Reader, sql, type Tx } from '../../database/database.ts'
import { conflict, problem } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import { addDays, type Day, dayIn, instantAt, startOfDay } from '../../kernel/time.ts'
import { paymentKeyOf } from '../../members/sealing.ts'
import { sealerOf } from '../../sealing/held.ts'
import type { Owner } from '../../sealing/member-keys.ts'
import type { BatchToWrite, PaymentOrder } from '../formats/bank-files.ts'
import { newBatchReference } from '../payments/reference.ts'
import { endMore, endUnanswered } from './bank-records.ts'
import { matchDebits } from './batch-debits.ts'
import { type BatchStatus, statusesBefore, unansweredStatuses, unsentStatuses } from './batch-lifecycle.ts'
import { listBrakes, releaseBrakes } from './brakes.ts'
import { byReference } from './by-reference.ts'
import * as copies from './copies.ts'
import { debtorOf } from './debtors.ts'
import * as exceptions from './exceptions.ts'
import type { FileRailSettings } from './file-rail-settings.ts'
import { endProposals } from './proposals.ts'
import * as railHolds from './rail-holds.ts'
import { lockRail } from './rail-lock.ts'

// How many payments are read at once while a file is written.
const pageSize = 5_000

const columns = [
  ...([
    'id',
    'messageId',
    'rail',
    'currency',
    'debtor',
    'valueDate',
    'isInstant',
    'cutOffAt',
    'status',
    'held',
  ] as const),
  ...(['paymentCount', 'controlTotal', 'fileName', 'fileSha256', 'nameCheck', 'closedAt', 'approvedAt'] as const),
  ...(['approvedAutomatically', 'sendingAt', 'sentAt', 'acknowledgedAt', 'endedAt'] as const),
]

/**
 * @property debtor 'default', or the partner whose own account pays
 * @property endedAt when the bank rejected it, its last payment was answered, or it was cancelled
 */
export type Batch = Columns<'payoutBatches', (typeof columns)[number]>

/** A payment that is to join a batch. */
export type Joining = { partnerId: string; reference: string; netAmount: bigint; isInstant: boolean }

/**
 * Adds payments to the open batch of their paying account and speed, and creates the batch if there is none. The payments must be locked,
 * and not in a batch yet.
 * @throws CalendarEnded
 */
export async function join(
  tx: Tx,
  { rail, payments, now }: { rail: FileRailSettings; payments: Joining[]; now: Date },
): Promise<void> {
  // In order, so that concurrent submissions lock batches in the same order.
  const groups = [...Map.groupBy(payments, each => `${debtorOf(rail, each.partnerId)} ${each.isInstant}`)].sort(
    ([a], [b]) => (a < b ? -1 : 1),
  )
  for (const [, all] of groups) {
    const [one] = all
    assert(one !== undefined)
    const { partnerId, isInstant } = one
    const { cutOffAt, valueDate, expectedOn } = rail.schedule(now, isInstant)
    const batch = { debtor: debtorOf(rail, partnerId), isInstant, cutOffAt, valueDate }
    for (let first = 0; first < all.length; first += rail.format.paymentsMax) {
      const some = all.slice(first, first + rail.format.paymentsMax)
      const batchId = await addToOpenBatch(tx, { rail, ...batch, payments: some, now })
      const references = some.map(({ reference }) => reference)
      for (const isNamed of await byReference(tx, references))
        await sql`
          update payouts p set batch_id = ${batchId}, expected_at = ${endOf(rail, expectedOn)},
                 remittance_text = (select o.remittance_text from partners o where o.id = p.partner_id)
           where ${isNamed('p')}`.execute(tx)
    }
  }
}

/** The last millisecond of a day. */
function endOf({ timeZone }: FileRailSettings, day: Day): Date {
  return new Date(startOfDay(timeZone, addDays(day, 1)).getTime() - 1)
}

type JoiningGroup = {
  rail: FileRailSettings
  debtor: string
  isInstant: boolean
  payments: Joining[]
  cutOffAt: Date
  valueDate: Day
  now: Date
}

/** Adds to the sums of the open batch. Closes a full batch and opens a new one. @returns the batch */
async function addToOpenBatch(
  tx: Tx,
  { rail, debtor, isInstant, payments, cutOffAt, valueDate, now }: JoiningGroup,
): Promise<string> {
  const { name, currency, format } = rail
  const total = payments.reduce((sum, { netAmount }) => sum + netAmount, 0n)
  const add = async () => {
    const { rows } = await sql<{ id: string }>`
      insert into payout_batches as b (id, message_id, rail, currency, debtor, value_date, is_instant, cut_off_at, status,
                                       payment_count, control_total, created_at)
      values (${newId('payoutBatch', now)}, ${newBatchReference()}, ${name}, ${currency}, ${debtor},
              ${valueDate}::date, ${isInstant}, ${cutOffAt}, 'building', ${payments.length}, ${total}, ${now})
          on conflict (rail, debtor, value_date, is_instant) where status = 'building' and closed_at is null
          do update set payment_count = b.payment_count + excluded.payment_count,
                        control_total = b.control_total + excluded.control_total,
                        cut_off_at = least(b.cut_off_at, excluded.cut_off_at)
           where b.payment_count + excluded.payment_count <= ${format.paymentsMax}
             and b.control_total + excluded.control_total <= ${format.totalMax}
      returning id`.execute(tx)
    return rows[0]?.id
  }
  const joined = await add()
  if (joined !== undefined) return joined
  const full = await sql<{ id: string }>`
    update payout_batches set closed_at = ${now}, is_full = true
     where rail = ${name} and debtor = ${debtor} and value_date = ${valueDate}::date and is_instant = ${isInstant}
       and status = 'building' and closed_at is null
    returning id`.execute(tx)
  await endProposals(tx, { subjects: idsOf(full.rows), because: 'The batch is full and closed', now })
  const opened = await add()
  assert(opened !== undefined)
  return opened
}

/** The settings of a rail that the approval of its batches needs. */
export type ApprovingRail = Pick<FileRailSettings, 'name' | 'currency' | 'automatic' | 'timeZone'>

type Payment = { reference: string; netAmount: bigint }
type Closed = { rail: ApprovingRail; debtor?: string; payments: Payment[]; now: Date }

/**
 * Puts payments that need no file into a new batch that takes no other payments. They must be locked, and not in a batch yet.
 * @returns its id
 */
export async function addClosed(tx: Tx, { rail, debtor = 'default', payments, now }: Closed): Promise<string> {
  const { name, currency, timeZone } = rail
  const batchId = newId('payoutBatch', now)
  const total = payments.reduce((sum, { netAmount }) => sum + netAmount, 0n)
  await sql`
    insert into payout_batches (id, message_id, rail, currency, debtor, value_date, is_instant, cut_off_at, status,
                                payment_count, control_total, created_at, closed_at)
    values (${batchId}, ${newBatchReference()}, ${name}, ${currency}, ${debtor}, ${dayIn(timeZone, now)}::date, false,
            ${now}, 'building', ${payments.length}, ${total}, ${now}, ${now})`.execute(tx)
  const references = payments.map(({ reference }) => reference)
  for (const isNamed of await byReference(tx, references))
    await sql`
      update payouts set batch_id = ${batchId} where ${isNamed()}`.execute(tx)
  return batchId
}

/** Freezes the approved batches among some whose payments are about to be requested one by one: no payment can be removed after that. */
export async function claimForRequests(
  tx: Tx,
  { batchIds, now }: { batchIds: readonly string[]; now: Date },
): Promise<void> {
  await sql`
    update payout_batches set status = 'sent', sending_at = ${now}, sent_at = ${now}
     where id = any(${[...batchIds]}::text[]) and status = 'approved' and not held and payment_count > 0`.execute(tx)
}

/**
 * Closes the batches whose cut-off has come, so that no more payments join them. Cancels empty batches, and approves the batches that need
 * no approval by people: none while a brake holds.
 */
export async function closeDue(
  tx: Tx,
  { rail, now }: { rail: ApprovingRail | FileRailSettings; now: Date },
): Promise<void> {
  await lockRail(tx, { rail: rail.name, for: 'batches' })
  if ('cutOff' in rail) await applyEarlierCutOff(tx, rail)
  const due = await sql<{ id: string }>`
    update payout_batches set closed_at = ${now}
     where rail = ${rail.name} and status = 'building' and closed_at is null and cut_off_at <= ${now}
    returning id`.execute(tx)
  await endProposals(tx, { subjects: idsOf(due.rows), because: 'The batch was closed at its cut-off', now })
  await admitClosed(tx, { rail, now })
}

/**
 * Closes one open batch immediately. The caller holds the lock of the rail's batches, and has recorded that a second person confirms it.
 */
export async function closeNow(
  tx: Tx,
  { rail, batchId, now }: { rail: FileRailSettings; batchId: string; now: Date },
): Promise<void> {
  await sql`
    update payout_batches set closed_at = ${now} where id = ${batchId}`.execute(tx)
  await admitClosed(tx, { rail, now })
}

/**
 * Closes open batches earlier if the settings now have an earlier cut-off. A batch keeps its day, its value date and its payments. A later
 * cut-off applies from the next batch.
 */
async function applyEarlierCutOff(tx: Tx, { name, timeZone, cutOff }: FileRailSettings): Promise<void> {
  const { rows } = await sql<{ id: string; cutOffAt: Date }>`
    select id, cut_off_at from payout_batches
     where rail = ${name} and status = 'building' and closed_at is null and not is_instant order by id
     for update`.execute(tx)
  for (const { id, cutOffAt } of rows) {
    const earlier = instantAt(timeZone, dayIn(timeZone, cutOffAt), cutOff)
    if (earlier < cutOffAt)
      await sql`
        update payout_batches set cut_off_at = ${earlier} where id = ${id}`.execute(tx)
  }
}

const isOneOf = (statuses: readonly BatchStatus[]) =>
  sql<boolean>`status in (${sql.join(statuses.map(status => sql.lit(status)))})`
const canBecome = (to: BatchStatus) => isOneOf(statusesBefore(to))
const isUnanswered = isOneOf(unansweredStatuses)

const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id)

async function admitClosed(
  tx: Tx,
  { rail, now }: { rail: ApprovingRail | FileRailSettings; now: Date },
): Promise<void> {
  await sql`
    update payout_batches set status = 'cancelled', ended_at = ${now}
     where rail = ${rail.name} and ${canBecome('cancelled')} and closed_at is not null
       and payment_count = 0`.execute(tx)
  const settings = 'format' in rail && rail.format.readsStatements ? rail : undefined
  await releaseBrakes(tx, { rail: rail.name, settings, now })
  if ((await listBrakes(tx, { rail: rail.name })).length === 0) await approveWithinLimits(tx, { rail, now })
}

async function approveWithinLimits(tx: Tx, { rail, now }: { rail: ApprovingRail; now: Date }): Promise<void> {
  if (rail.automatic === null) return
  const { paymentMax, batchMax, dayMax } = rail.automatic
  const waiting = await sql<{ id: string; controlTotal: bigint }>`
    select id, control_total from payout_batches
     where rail = ${rail.name} and status = 'building' and closed_at is not null
     order by id for update`.execute(tx)
  let approvedToday = await sumApprovedToday(tx, { rail, now })
  for (const { id, controlTotal } of waiting.rows) {
    if (controlTotal > batchMax || approvedToday + controlTotal > dayMax) continue
    const { rows: larger } = await sql`
      select reference from payouts
       where batch_id = ${id} and removed_at is null and net_amount > ${paymentMax} limit 1`.execute(tx)
    if (larger.length > 0) continue
    await sql`
      update payout_batches set status = 'approved', approved_at = ${now}, approved_automatically = true
       where id = ${id}`.execute(tx)
    approvedToday += controlTotal
  }
}

/**
 * Settles the batches that wait for no further answer. If the bank does not confirm payments, the unanswered payments of a batch count as
 * paid once their payees must have the money, and each becomes a report of the rail; a later return still counts. A batch that was sent too
 * late opens an exception instead. Also matches debits of whole batches, and settles batches whose last answer came before their delivery
 * was recorded.
 */
export async function endDue(tx: Tx, { rail, now }: { rail: FileRailSettings; now: Date }): Promise<void> {
  await lockRail(tx, { rail: rail.name, for: 'records' })
  await payUnanswered(tx, { rail, now })
  await matchDebits(tx, { rail: rail.name, now })
  await settleAnswered(tx, { rail: rail.name, now })
}

async function payUnanswered(tx: Tx, { rail, now }: { rail: FileRailSettings; now: Date }): Promise<void> {
  const { countsAsPaid } = rail
  if (countsAsPaid === null) return
  const unanswered = await sql<SentBatch>`
    select id, message_id, value_date, cut_off_at, sent_at, is_instant from payout_batches
     where rail = ${rail.name} and ${isUnanswered} order by id for update`.execute(tx)
  const today = dayIn(rail.timeZone, now)
  for (const batch of unanswered.rows) {
    const { id, messageId } = batch
    if (!(await hasUnanswered(tx, id))) continue
    const valueDate = await executedOn(tx, { rail, batch, now })
    if (valueDate === null || !countsAsPaid(valueDate, today)) continue
    const source = { rail: rail.name, messageId, keyPrefix: 'unanswered' }
    await endUnanswered(tx, { source, batchId: id, outcome: 'paid', now })
  }
}

type SentBatch = { id: string; messageId: string; valueDate: Day; cutOffAt: Date; sentAt: Date; isInstant: boolean }

/**
 * The value date on which the bank executes a sent batch. The bank may have refused a file that arrived after the day of its cut-off, and a
 * bank that does not confirm payments does not say so: null until an operator has asked the bank and closed the exception.
 */
async function executedOn(
  tx: Tx,
  { rail, batch, now }: { rail: FileRailSettings; batch: SentBatch; now: Date },
): Promise<Day | null> {
  const { messageId, valueDate, cutOffAt, sentAt, isInstant } = batch
  const [sentOn, lastDay] = [dayIn(rail.timeZone, sentAt), dayIn(rail.timeZone, cutOffAt)]
  if (sentOn <= lastDay) return valueDate
  const fingerprint = `late ${messageId}`
  const decision = await exceptions.decisionOn(tx, { rail: rail.name, fingerprint })
  if (decision !== undefined) return decision === 'ignore' ? rail.schedule(sentAt, isInstant).valueDate : null
  const reason =
    `The file was recorded as sent on ${sentOn}, but its cut-off was on ${lastDay}; ask the bank, and give back if it refused ` +
    'the file, or ignore this exception if it executes the file'
  await exceptions.open(tx, [{ rail: rail.name, kind: 'blocked', fingerprint, reason, reference: messageId }], now)
  return null
}

/**
 * Ends the remaining payments of batches whose unanswered payments all end, in short transactions, so that payouts can take the rail's lock
 * in between. Safe to run twice, also concurrently.
 */
export async function endRest(db: Reader, { rail, now }: { rail: string; now: Date }): Promise<void> {
  const endSome = async (tx: Tx) => {
    await lockRail(tx, { rail, for: 'records' })
    const ending = await endMore(tx, rail)
    if (ending?.isDone) await settleAnswered(tx, { rail, now })
  }
  const isAny = async () => {
    const { rows } = await sql`select from payout_batch_endings where rail = ${rail} limit 1`.execute(db)
    return rows.length > 0
  }
  while (await isAny()) await db.transaction().execute(endSome)
}

/** Ends the batches of a rail whose payments all have an answer. */
export async function settleAnswered(tx: Tx, { rail, now }: { rail: string; now: Date }): Promise<void> {
  const { rows } = await sql<{ id: string }>`
    select id from payout_batches where rail = ${rail} and ${canBecome('settled')} order by id for update`.execute(tx)
  for (const { id } of rows)
    if (!(await hasUnanswered(tx, id)))
      await sql`
        update payout_batches set status = 'settled', ended_at = ${now} where id = ${id}`.execute(tx)
}

/** Whether a payment of a batch has no answer of the bank. */
export async function hasUnanswered(db: Reader, batchId: string): Promise<boolean> {
  const { rows } = await sql`
    select reference from payouts where batch_id = ${batchId} and outcome is null limit 1`.execute(db)
  return rows.length > 0
}

async function sumApprovedToday(tx: Tx, { rail, now }: { rail: ApprovingRail; now: Date }): Promise<bigint> {
  const dayStart = startOfDay(rail.timeZone, dayIn(rail.timeZone, now))
  const { rows } = await sql<{ sum: bigint }>`
    select coalesce(sum(control_total), 0)::bigint as sum from payout_batches
     where rail = ${rail.name} and approved_automatically and approved_at >= ${dayStart}`.execute(tx)
  return rows[0]?.sum ?? 0n
}

/** The batches that wait to be delivered, oldest first; none while the rail is held. */
export async function listSendable(db: Reader, rail: string): Promise<string[]> {
  if (await railHolds.isHeld(db, rail)) return []
  const rows = await db
    .selectFrom('payoutBatches')
    .select('id')
    .where('rail', '=', rail)
    .where('status', '=', 'approved')
    .where('held', '=', false)
    .orderBy('id')
    .execute()
  return rows.map(({ id }) => id)
}

type SendingClaim = {
  rail: FileRailSettings
  batchId: string
  leaves?: { kind: copies.CopyKind; person: string | null } | undefined
  now: Date
}

/**
 * Claims an approved batch, so that its file can be written: from then on the batch can be neither held nor changed. If the day of its
 * cut-off is over, the batch takes the next possible value date, unless an earlier sender may have written its file.
 * @param leaves how the file is about to leave, which is recorded as a copy; undefined if it does not
 * @returns undefined if it is not approved, held, or sent already
 * @throws CalendarEnded
 */
export async function claimForSending(
  tx: Tx,
  { rail, batchId, leaves, now }: SendingClaim,
): Promise<(Batch & { fileName: string; missed: Day | null; copy: number | null }) | undefined> {
  const { rows } = await sql<{ fileName: string; isFixed: boolean }>`
    update payout_batches b
       set sending_at = coalesce(b.sending_at, ${now}),
           file_name = coalesce(b.file_name, b.message_id || '.' || ${rail.format.extension})
      from (select id, sending_at is not null as is_fixed from payout_batches where id = ${batchId} for update) before
     where b.id = before.id and b.status = 'approved' and not b.held and b.payment_count > 0
       and not ${railHolds.holds(sql`b.rail`)}
    returning b.file_name, before.is_fixed`.execute(tx)
  const [claimed] = rows
  const batch = claimed && (await find(tx, batchId))
  if (claimed === undefined || batch === undefined) return undefined
  const { fileName, isFixed } = claimed
  const copy =
    leaves === undefined ? null : await copies.record(tx, { batchId, ...leaves, timeZone: rail.timeZone, now })
  const isLate = dayIn(rail.timeZone, now) > dayIn(rail.timeZone, batch.cutOffAt)
  if (isFixed || !isLate) return { ...batch, fileName, missed: null, copy }
  const { cutOffAt, valueDate, expectedOn } = rail.schedule(now, batch.isInstant)
  await sql`
    update payout_batches set cut_off_at = ${cutOffAt}, value_date = ${valueDate}::date
     where id = ${batchId}`.execute(tx)
  await sql`
    update payouts set expected_at = ${endOf(rail, expectedOn)}
     where batch_id = ${batchId} and removed_at is null`.execute(tx)
  return { ...batch, cutOffAt, valueDate, fileName, missed: batch.valueDate, copy }
}

/** Releases a claim when its file did not leave. Without another copy, the batch can be changed again. */
export async function unclaim(tx: Tx, { batchId, copy }: { batchId: string; copy: number | null }): Promise<void> {
  const { rows } =
    await sql`select from payout_batches where id = ${batchId} and status = 'approved' for update`.execute(tx)
  if (rows.length === 0) return
  if (copy !== null) await copies.forget(tx, { batchId, number: copy })
  await sql`
    update payout_batches set sending_at = null, answered_at = null, copy_taken_at = null
     where id = ${batchId} and not exists (select from payout_batch_copies where batch_id = ${batchId})`.execute(tx)
}

/** The path to which a manual export began to write the file of an approved batch that was not recorded as sent; null if there was none. */
export async function findBegunExport(db: Reader, batchId: string): Promise<string | null> {
  const { rows } = await sql<{ exportedTo: string | null }>`
    select exported_to from payout_batches
     where id = ${batchId} and status = 'approved' and answered_at is null`.execute(db)
  return rows[0]?.exportedTo ?? null
}

/** Records the path to which a manual export is about to write the file of a claimed batch; null if it wrote nothing. */
export async function recordBegunExport(
  tx: Tx,
  { batchId, place }: { batchId: string; place: string | null },
): Promise<void> {
  await sql`
    update payout_batches set exported_to = ${place} where id = ${batchId} and status = 'approved'`.execute(tx)
}

/** Records that the bank has answered batches, or payments of them: it has their files, even if no delivery is recorded. */
export async function recordAnswered(
  tx: Tx,
  { batchIds, now }: { batchIds: readonly string[]; now: Date },
): Promise<void> {
  if (batchIds.length === 0) return
  await sql`
    update payout_batches set answered_at = ${now}
     where id = any(${batchIds}::text[]) and sending_at is not null and answered_at is null`.execute(tx)
}

/** Filters message ids: returns those of batches at the bank. */
export async function listSent(
  db: Reader,
  { rail, messageIds }: { rail: string; messageIds: readonly string[] },
): Promise<Set<string>> {
  if (messageIds.length === 0) return new Set()
  const { rows } = await sql<{ messageId: string }>`
    select message_id from payout_batches
     where rail = ${rail} and message_id = any(${messageIds}::text[]) and sending_at is not null`.execute(db)
  return new Set(rows.map(({ messageId }) => messageId))
}

/** Records that the bank has shown that it took a copy of the files of batches: by any answer but a rejection, or by a booking. */
export async function recordSignOfCopy(
  tx: Tx,
  { batchIds, now }: { batchIds: readonly string[]; now: Date },
): Promise<void> {
  if (batchIds.length === 0) return
  await sql`
    update payout_batches set copy_taken_at = ${now}
     where id = any(${batchIds}::text[]) and sending_at is not null and copy_taken_at is null`.execute(tx)
}

/**
 * Whether the bank has shown that it took a copy of a batch's file. It may pay that copy even if it rejects another, so two people
 * decide whether the money is given back.
 */
export async function hasSignOfCopy(db: Reader, batchId: string): Promise<boolean> {
  const { rows } = await sql`
    select from payout_batches b
     where id = ${batchId}
       and (copy_taken_at is not null or acknowledged_at is not null
            or exists (select reference from payouts where batch_id = ${batchId} and outcome in ('paid', 'returned'))
            or exists (select from bank_records r where r.rail = b.rail and r.reference = b.message_id and r.booked_on is not null))`.execute(
    db,
  )
  return rows.length > 0
}

/** Records that all unanswered payments of a batch were given back, because the bank rejected the batch. */
export async function recordGivenBack(tx: Tx, { batchId, now }: { batchId: string; now: Date }): Promise<void> {
  await sql`
    update payout_batches set given_back_at = ${now}
     where id = ${batchId} and given_back_at is null`.execute(tx)
}

/** Whether the bank has answered a batch or one of its payments. Its file must not go to the bank again. */
export async function isAnswered(db: Reader, batchId: string): Promise<boolean> {
  const { rows } = await sql`
    select from payout_batches where id = ${batchId} and answered_at is not null`.execute(db)
  return rows.length > 0
}

/**
 * Records that a batch was delivered. Does nothing if it was recorded before. The bank may have answered it already, while its
 * sender was down.
 */
export async function recordSent(
  tx: Tx,
  { batchId, sha256, now }: { batchId: string; sha256: string; now: Date },
): Promise<void> {
  await sql`
    update payout_batches set status = 'sent', sent_at = ${now}, file_sha256 = ${sha256}
     where id = ${batchId} and status = 'approved'`.execute(tx)
  await sql`
    update payout_batches set status = case when ended_at is null then 'acknowledged' else 'rejected' end
     where id = ${batchId} and status = 'sent' and (acknowledged_at is not null or ended_at is not null)`.execute(tx)
}

/** A claimed batch as its format writes it. The same claim gives the same bytes, however often it is written. */
export function toWrite(db: Reader, { rail, batch }: { rail: FileRailSettings; batch: Batch }): BatchToWrite {
  const { messageId, valueDate, currency, paymentCount, controlTotal, isInstant, sendingAt } = batch
  assert(sendingAt !== null)
  const debtor = rail.debtors[batch.debtor]
  if (debtor === undefined) throw new Error(`The rail ${rail.name} no longer has an account for ${batch.debtor}`)
  const common = { messageId, valueDate, currency, paymentCount, controlTotal, isInstant, debtor }
  return { ...common, createdAt: sendingAt, payments: ordersOf(db, batch.id) }
}

async function* ordersOf(db: Reader, batchId: string): AsyncGenerator<PaymentOrder> {
  for (let after = ''; ; ) {
    const { rows } = await sql<
      StoredAccount & Owner & { reference: string; netAmount: bigint; remittanceText: string }
    >`
      select p.reference, p.net_amount, p.remittance_text, i.partner_id, i.member_id, i.account,
             ${paymentKeyOf('i', { memberId: 'member_id' })} as payment_key
        from payouts p
        join withdrawals w on w.partner_id = p.partner_id and w.id = p.withdrawal_id
        join withdrawal_intents i on i.partner_id = w.partner_id and i.id = w.withdrawal_intent_id
       where p.batch_id = ${batchId} and p.removed_at is null and p.reference > ${after}
       order by p.reference limit ${pageSize}`.execute(db)
    for (const { reference, netAmount, remittanceText, ...stored } of rows) {
      const account = openAccount(sealerOf(db), stored, stored)
      if (account === null)
        throw conflict(
          `The file can no longer be written: the account of ${reference} is no longer kept. If the file was not sent, take the payment out with midmonth payouts remove`,
        )
      yield { reference, amount: netAmount, account, remittanceText: remittanceText || undefined }
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < pageSize) return
    after = last.reference
  }
}

async function find(db: Reader, batchId: string): Promise<Batch | undefined> {
  return await db.selectFrom('payoutBatches').select(columns).where('id', '=', batchId).executeTakeFirst()
}

/** Locks a batch. @throws Problem `NotFound` */
export async function lock(tx: Tx, batchId: string): Promise<Batch> {
  await sql`select from payout_batches where id = ${batchId} for update`.execute(tx)
  return await get(tx, batchId)
}

/** @throws Problem `NotFound` */
export async function get(db: Reader, batchId: string): Promise<Batch> {
  const batch = await find(db, batchId)
  if (batch === undefined) throw problem('NotFound', `There is no batch ${batchId}`)
  return batch
}

type BatchFilter = {
  rail?: string | undefined
  statuses?: readonly BatchStatus[] | undefined
  before?: string | undefined
  take: number
}

/** Batches, newest first. @param before an id: only older ones */
export async function list(db: Reader, { rail, statuses, before, take }: BatchFilter): Promise<Batch[]> {
  return await db
    .selectFrom('payoutBatches')
    .select(columns)
    .$if(rail !== undefined, query => query.where('rail', '=', rail ?? ''))
    .$if(statuses !== undefined, query => query.where(sql<boolean>`status = any(${[...(statuses ?? [])]}::text[])`))
    .$if(before !== undefined, query => query.where('id', '<', before ?? ''))
    .orderBy('id', 'desc')
    .limit(take)
    .execute()
}

/** One payment of a batch. `removedAt`: an operator took it out. */
export type BatchPayment = Columns<
  'payouts',
  'reference' | 'partnerId' | 'withdrawalId' | 'netAmount' | 'outcome' | 'reason' | 'removedAt'
> & {
  partnerName: string
  memberId: string
  /** The holder of the paid account, and the end of its number. Null if it was erased. */
  payee: { accountHolder: string; lastFour: string } | null
}

/** The payments of a batch in the order of its file. @param after a reference: only those after it */
export async function listPayments(
  db: Reader,
  { batchId, after, take }: { batchId: string; after: string; take: number },
): Promise<BatchPayment[]> {
  const { rows } = await sql<Omit<BatchPayment, 'payee'> & StoredAccount>`
    select p.reference, p.partner_id, o.name as partner_name, w.member_id, p.withdrawal_id, p.net_amount, p.outcome, p.reason,
           p.removed_at, i.account, ${paymentKeyOf('i', { memberId: 'member_id' })} as payment_key
      from payouts p
      join partners o on o.id = p.partner_id
      join withdrawals w on w.partner_id = p.partner_id and w.id = p.withdrawal_id
      join withdrawal_intents i on i.partner_id = w.partner_id and i.id = w.withdrawal_intent_id
     where p.batch_id = ${batchId} and p.reference > ${after} order by p.reference limit ${take}`.execute(db)
  const sealer = sealerOf(db)
  return rows.map(({ account: sealed, paymentKey, ...payment }) => {
    const account = openAccount(sealer, { account: sealed, paymentKey }, payment)
    return { ...payment, payee: account && { accountHolder: account.accountHolder, lastFour: lastFour(account) } }
  })
}

/** The partners with payments in a batch. */
export async function listPartners(db: Reader, batchId: string): Promise<string[]> {
  const { rows } = await sql<{ partnerId: string }>`
    select distinct partner_id from payouts where batch_id = ${batchId} order by partner_id`.execute(db)
  return rows.map(({ partnerId }) => partnerId)
}

/** Subtracts the payments of a partner from their batches, before a reset of a sandbox on Citus deletes them. */
export async function subtractPartner(tx: Tx, partnerId: string): Promise<void> {
  await sql`
    with p as materialized (
      select batch_id, count(*)::integer as count, sum(net_amount)::bigint as total from payouts
       where partner_id = ${partnerId} and batch_id is not null and removed_at is null group by batch_id
    )
    update payout_batches b set payment_count = b.payment_count - p.count, control_total = b.control_total - p.total
      from p where b.id = p.batch_id`.execute(tx)
}

/** Counts the batches that await approval by people. */
export async function countWaiting(db: Reader): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from payout_batches
     where status = 'building' and closed_at is not null`.execute(db)
  return rows[0]?.count ?? 0
}

/** The batches of a rail with a status. @property oldestCutOffAt the first cut-off of those that take no more payments; null without any */
export type BatchCount = { rail: string; status: BatchStatus; count: number; oldestCutOffAt: Date | null }

/** Counts the batches that are not settled, by rail and status. */
export async function countUnsettled(db: Reader): Promise<BatchCount[]> {
  const { rows } = await sql<BatchCount>`
    select rail, status, count(*)::integer as count,
           min(cut_off_at) filter (where closed_at is not null) as oldest_cut_off_at
      from payout_batches
     where status in (${sql.join([...unsentStatuses, ...unansweredStatuses])})
     group by rail, status order by rail, status`.execute(db)
  return rows
}
