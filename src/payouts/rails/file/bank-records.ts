import { sql, type Tx } from '../../../database/database.ts'
import type { FinalOutcome } from '../../../withdrawals/lifecycle.ts'
import type { BankFileHead } from '../bank-files.ts'
import { reasonInWords } from '../reasons.ts'
import type { Booked } from './bookings.ts'
import type { Context, Keyed } from './record-keys.ts'

// The records of a rail of files are its feed: it reports those that have an outcome. Their writers hold the lock of the rail
// for records.

// A batch of 100,000 payments takes about ten seconds beside other work, which is the limit of ordinary statements.
const statementTimeout = '10min'

/**
 * Ends every payment of a batch that has not been answered one by one, and adds each to what the rail reports. The reason is
 * about the batch, so nothing follows from it for the members.
 * @param source `keyPrefix` and a reference are unique within the message
 */
export async function endUnanswered(
  tx: Tx,
  {
    source: { rail, messageId, keyPrefix, file },
    batchId,
    outcome,
    reasonCode = null,
    now,
  }: {
    source: { rail: string; messageId: string; keyPrefix: string; file?: { id: string; line: number } }
    batchId: string
    outcome: FinalOutcome
    reasonCode?: string | null
    now: Date
  },
): Promise<void> {
  const reason = reasonInWords(reasonCode)
  await sql`select set_config('statement_timeout', ${statementTimeout}, true)`.execute(tx)
  await sql`
    with ended as (
      update payouts set outcome = ${outcome}, reason_code = ${reasonCode}, reason = ${reason}
       where batch_id = ${batchId} and outcome is null
      returning reference
    )
    insert into bank_records (rail, bank_file_id, message_id, entry_key, line, reference, outcome, reason, created_at)
    select ${rail}, ${file?.id ?? null}, ${messageId}, ${keyPrefix} || ' ' || reference, ${file?.line ?? null}, reference,
           ${outcome}, ${reason}, ${now}
      from ended order by reference`.execute(tx)
}

/**
 * Makes payments that were given back paid, and adds each to what the rail reports: the withdrawals follow, and take the money from
 * the members again.
 * @param exceptionId the exception that decides it
 * @returns the references of those that had been given back
 */
export async function recoverPayments(
  tx: Tx,
  {
    rail,
    exceptionId,
    references,
    now,
  }: { rail: string; exceptionId: string; references: readonly string[]; now: Date },
): Promise<string[]> {
  await sql`select set_config('statement_timeout', ${statementTimeout}, true)`.execute(tx)
  const { rows } = await sql<{ reference: string }>`
    with recovered as (
      update payouts set outcome = 'paid', reason_code = null, reason = null, restriction = null
       where rail = ${rail} and reference = any(${[...references]}::text[]) and outcome in ('failed', 'returned')
         and removed_at is null
      returning reference
    )
    insert into bank_records (rail, message_id, entry_key, reference, outcome, recovery_id, reason, created_at)
    select ${rail}, 'operator', ${exceptionId} || ' ' || reference, reference, 'paid', ${exceptionId},
           'The bank has paid after all', ${now}
      from recovered order by reference
    returning reference`.execute(tx)
  return rows.map(({ reference }) => reference)
}

/** A record that is kept, so that it counts once. With an outcome, it is reported. */
export type Kept = {
  record: Keyed
  reference: string
  outcome?: FinalOutcome | null
  reason?: string | null
  /** What it books, if it moves money. */
  booked?: Booked | null
  /** The movement of a float that explains it. */
  movementId?: string | null
}

/** Keeps records of one message, in order. */
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
