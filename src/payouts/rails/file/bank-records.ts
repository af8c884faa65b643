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

/** Keeps a record that reports no payment, so that it counts once. */
export async function keepRecord(
  tx: Tx,
  { rail, fileId, now }: Context,
  {
    head,
    record,
    reference,
    booked,
    movementId,
  }: {
    head: BankFileHead
    record: Keyed
    reference: string
    booked?: Booked | undefined
    movementId?: string | undefined
  },
): Promise<void> {
  await sql`
    insert into bank_records (rail, bank_file_id, message_id, entry_key, line, reference, movement_id, account, booked_on, amount,
                              bank_reference, created_at)
    values (${rail.name}, ${fileId}, ${head.messageId}, ${record.key}, ${record.line}, ${reference}, ${movementId},
            ${booked?.account}, ${booked?.day}::date, ${booked?.amount}, ${booked?.bankReference}, ${now})`.execute(tx)
}
