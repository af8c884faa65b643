import type { RawBuilder } from 'kysely'
import { type Columns, type Reader, sql, type Tx } from '../../database/database.ts'
import { conflict } from '../../kernel/errors.ts'
import type { Day } from '../../kernel/time.ts'
import type { FinalOutcome } from '../../withdrawals/lifecycle.ts'
import type { BankFileHead } from '../formats/bank-files.ts'
import type { Booked } from './bookings.ts'
import { byReference } from './by-reference.ts'
import { reasonInWords } from './reasons.ts'
import type { Context, Keyed } from './record-keys.ts'

// The records of a rail that keeps books are its feed: the rail reports every record that has an outcome. Writers hold the rail's lock for
// records.

// How many payments end in one transaction: this many hold the rail's lock for a few tenths of a second.
const endedAtOnce = 1_000

/** A decision that every unanswered payment of a batch has ended. The reason is about the batch, so nothing follows for the members. */
type Ending = {
  batchId: string
  outcome: FinalOutcome
  reasonCode?: string | null
  /** `keyPrefix` and a reference are unique within the message. */
  source: { rail: string; messageId: string; keyPrefix: string; file?: { id: string; line: number } }
  now: Date
}

/**
 * Ends every payment of a batch that has not been answered separately, and reports each on the rail. In a large batch, only the first
 * payments end now, and `endRest` ends the others.
 * @throws Problem `Conflict` if that is already in progress
 */
export async function endUnanswered(tx: Tx, ending: Ending): Promise<void> {
  const { batchId, outcome, reasonCode = null, source, now } = ending
  const { rows } = await sql`select from payout_batch_endings where batch_id = ${batchId}`.execute(tx)
  if (rows.length > 0) throw conflict('The payments of the batch are being ended; try again in a minute')
  const unanswered = sql`
    select reference from payouts where batch_id = ${batchId} and outcome is null
     order by partner_id, reference limit ${endedAtOnce}`
  if ((await endSome(tx, ending, unanswered)) < endedAtOnce) return
  await sql`
    insert into payout_batch_endings (batch_id, rail, outcome, reason_code, message_id, key_prefix, bank_file_id, line, decided_at)
    values (${batchId}, ${source.rail}, ${outcome}, ${reasonCode}, ${source.messageId}, ${source.keyPrefix}, ${source.file?.id},
            ${source.file?.line}, ${now})`.execute(tx)
}

/**
 * Ends more of the payments that `endUnanswered` has left in a batch, all of one partner. The caller holds the lock of the records.
 * @returns the batch; undefined if no batch has payments left
 */
export async function endMore(tx: Tx, rail: string): Promise<{ batchId: string; isDone: boolean } | undefined> {
  const { rows } = await sql<Columns<'payoutBatchEndings'>>`
    select batch_id, outcome, reason_code, rail, message_id, key_prefix, bank_file_id, line, decided_at
      from payout_batch_endings where rail = ${rail} order by batch_id limit 1`.execute(tx)
  const [ending] = rows
  if (ending === undefined) return undefined
  const { batchId, messageId, keyPrefix, bankFileId, line, decidedAt: now } = ending
  const file = bankFileId === null || line === null ? {} : { file: { id: bankFileId, line } }
  const ofOnePartner = sql`
    select reference from payouts
     where batch_id = ${batchId} and outcome is null
       and partner_id = (select partner_id from payouts where batch_id = ${batchId} and outcome is null order by partner_id limit 1)
     order by reference limit ${endedAtOnce}`
  const ended = await endSome(tx, { ...ending, source: { rail, messageId, keyPrefix, ...file }, now }, ofOnePartner)
  if (ended === 0) await sql`delete from payout_batch_endings where batch_id = ${batchId}`.execute(tx)
  return { batchId, isDone: ended === 0 }
}

/** @returns how many payments have ended */
async function endSome(
  tx: Tx,
  { batchId, source: { rail, messageId, keyPrefix, file }, outcome, reasonCode = null, now }: Ending,
  references: ReturnType<typeof sql>,
): Promise<number> {
  const reason = reasonInWords(reasonCode)
  const { numAffectedRows } = await sql`
    with ended as (
      update payouts set outcome = ${outcome}, reason_code = ${reasonCode}, reason = ${reason}
       where batch_id = ${batchId} and reference = any(array(${references}))
      returning reference
    )
    insert into bank_records (rail, bank_file_id, message_id, entry_key, line, reference, outcome, reason, created_at)
    select ${rail}, ${file?.id ?? null}, ${messageId}, ${keyPrefix} || ' ' || reference, ${file?.line ?? null}, reference,
           ${outcome}, ${reason}, ${now}
      from ended order by reference`.execute(tx)
  return Number(numAffectedRows ?? 0n)
}

// Recovering a batch of 100,000 payments beside other work takes longer than ordinary statements may.
const statementTimeout = '10min'

type Recovery = { rail: string; exceptionId: string; references: readonly string[]; bookedOn: Day | null; now: Date }

/**
 * Turns payments that were given back into paid payments, and reports each on the rail: the withdrawals follow, and take the money from the
 * members again.
 * @param exceptionId the exception that decides it
 * @param bookedOn when the bank debited them; null if a record of a file says so
 * @returns the references of the payments that had been given back
 */
export async function recoverPayments(
  tx: Tx,
  { rail, exceptionId, references, bookedOn, now }: Recovery,
): Promise<string[]> {
  await sql`select set_config('statement_timeout', ${statementTimeout}, true)`.execute(tx)
  const recovered: string[] = []
  for (const isNamed of await byReference(tx, references)) {
    const { rows } = await sql<{ reference: string }>`
      with recovered as (
        update payouts set outcome = 'paid', reason_code = null, reason = null, restriction = null
         where rail = ${rail} and ${isNamed()} and outcome in ('failed', 'returned') and removed_at is null
        returning reference, net_amount
      )
      insert into bank_records (rail, message_id, entry_key, reference, outcome, recovery_id, reason, booked_on, amount, created_at)
      select ${rail}, 'operator', ${exceptionId} || ' ' || reference, reference, 'paid', ${exceptionId},
             'The bank has paid after all', ${bookedOn}::date, case when ${bookedOn}::date is not null then -net_amount end, ${now}
        from recovered order by reference
      returning reference`.execute(tx)
    recovered.push(...rows.map(({ reference }) => reference))
  }
  return recovered
}

/**
 * SQL: the payment `p` has failed, or was given back after a status had called it paid, without a credit. A debit of its batch does not
 * include it.
 */
export const isUnpaid = sql<boolean>`(
  p.outcome is not null
  and (p.outcome = 'failed'
       or (p.outcome = 'returned' and not exists (select from bank_records r
                                                   where r.rail = p.rail and r.reference = p.reference and r.booked_on is not null and r.amount > 0))))`

/**
 * SQL: some payments as a sub-select, to be named `p`. Its rows are found before others are joined, which a distributed PostgreSQL has on
 * the coordinator.
 */
export const paymentsWhere = (condition: RawBuilder<unknown>) => sql`(
  select reference, partner_id, withdrawal_id, rail, batch_id, net_amount, currency, outcome, removed_at from payouts
   where ${condition} offset 0)`

/** SQL: the payments of a batch that the bank was to make, like `paymentsWhere`. */
export const paymentsOf = (batchId: string) => paymentsWhere(sql`batch_id = ${batchId} and removed_at is null`)

/** Sums the unpaid payments of a batch. A debit of the batch as a whole does not include them. */
export async function sumUnpaid(db: Reader, batchId: string): Promise<bigint> {
  const { rows } = await sql<{ sum: bigint }>`
    select coalesce(sum(p.net_amount), 0)::bigint as sum from ${paymentsOf(batchId)} p where ${isUnpaid}`.execute(db)
  return rows[0]?.sum ?? 0n
}

/** Records which payments the operator bears, so that an answer that only announced the same money does not recover it. */
export async function keepWrittenOff(
  tx: Tx,
  { rail, exceptionId, references, now }: Omit<Recovery, 'bookedOn'>,
): Promise<void> {
  await sql`
    insert into bank_records (rail, message_id, entry_key, reference, reason, created_at)
    select ${rail}, 'operator', 'written off ' || ${exceptionId} || ' ' || reference, reference, 'The operator bears it', ${now}
      from unnest(${[...references]}::text[]) as w (reference)`.execute(tx)
}

/** Filters payments: returns those that the operator bears, in order. */
export async function listWrittenOff(
  db: Reader,
  { rail, references }: { rail: string; references: readonly string[] },
): Promise<string[]> {
  const { rows } = await sql<{ reference: string }>`
    select distinct reference from bank_records
     where rail = ${rail} and reference = any(${[...references]}::text[]) and message_id = 'operator'
       and entry_key like 'written off %'
     order by reference`.execute(db)
  return rows.map(({ reference }) => reference)
}

type ExplainedMoney = { rail: string; key: string; reference: string; movementId: string; now: Date }

/**
 * Records that an operator's decision explains money of the bank by a movement.
 * @param key unique over all decisions
 * @param reference of the payment, batch or entry; empty if there is none
 */
export async function recordMovement(tx: Tx, { rail, key, reference, movementId, now }: ExplainedMoney): Promise<void> {
  await sql`
    insert into bank_records (rail, message_id, entry_key, reference, movement_id, created_at)
    values (${rail}, 'operator', ${key}, ${reference}, ${movementId}, ${now})`.execute(tx)
}

/** A record is stored so that it counts once. A record with an outcome is reported. */
export type Kept = {
  record: Keyed
  reference: string
  outcome?: FinalOutcome | null
  reason?: string | null
  /** The booking, if the record moves money. */
  booked?: Booked | null
  /** The movement of a float that explains the booking. */
  movementId?: string | null
}

/** Stores the records of one message, in order. */
export async function keepRecords(
  tx: Tx,
  { rail, fileId, now }: Context,
  { head, kept }: { head: BankFileHead; kept: Kept[] },
): Promise<void> {
  if (kept.length === 0) return
  await sql`
    insert into bank_records (rail, bank_file_id, message, message_id, entry_key, line, reference, outcome, reason, movement_id,
                              account, booked_on, amount, bank_reference, created_at)
    select ${rail.name}, ${fileId}, ${head.message}, ${head.messageId}, entry_key, line, reference, outcome, reason, movement_id,
           case when booked_on is not null then ${head.account} end, booked_on, amount, bank_reference, ${now}
      from unnest(${kept.map(({ record }) => record.key)}::text[], ${kept.map(({ record }) => record.line)}::integer[],
                  ${kept.map(({ reference }) => reference)}::text[], ${kept.map(({ outcome }) => outcome ?? null)}::text[],
                  ${kept.map(({ reason }) => reason ?? null)}::text[],
                  ${kept.map(({ movementId }) => movementId ?? null)}::text[],
                  ${kept.map(({ booked }) => booked?.day ?? null)}::date[],
                  ${kept.map(({ booked }) => booked?.amount ?? null)}::bigint[],
                  ${kept.map(({ booked }) => booked?.bankReference ?? null)}::text[])
             with ordinality
        as r (entry_key, line, reference, outcome, reason, movement_id, booked_on, amount, bank_reference, place)
     order by place`.execute(tx)
}
