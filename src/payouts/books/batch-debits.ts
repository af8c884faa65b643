import { sql, type Tx } from '../../database/database.ts'
import { endUnanswered, sumUnpaid } from './bank-records.ts'
import * as exceptions from './exceptions.ts'

/** For the operator, about the second debit of a batch. */
export const debitedTwice = 'The bank debited the batch a second time; ask the bank to refund the second debit'

type Waiting = {
  amount: bigint
  controlTotal: bigint
  exceptionId: string
  batchId: string
  messageId: string
  entryKey: string
  bankFileId: string
  line: number
}

/**
 * Matches debits of whole batches again if they did not fit when they arrived: a bank can book the net sum of a batch before it reports
 * which of its payments failed. The caller holds the lock of the records.
 * @param recoveredBatchId a batch whose payments the caller has recovered: a debit that came after they were given back may fit
 */
export async function matchDebits(
  tx: Tx,
  { rail, recoveredBatchId = null, now }: { rail: string; recoveredBatchId?: string | null; now: Date },
): Promise<void> {
  const { rows } = await sql<Waiting>`
    select e.id as exception_id, e.amount, b.control_total, b.id as batch_id, r.message_id, r.entry_key, r.bank_file_id, r.line
      from payout_exceptions e
      join payout_batches b on b.rail = e.rail and b.message_id = e.reference and b.sending_at is not null
      join bank_records r on r.rail = e.rail and r.reference = e.reference and r.booked_on is not null
       and e.fingerprint = r.message_id || ' ' || r.entry_key
     where e.rail = ${rail} and e.closed_at is null and e.amount < 0
       and (e.kind = 'amount' or (e.kind = 'paid_after_give_back' and b.id = ${recoveredBatchId}))
     order by r.sequence`.execute(tx)
  for (const [batchId, waiting] of Map.groupBy(rows, row => row.batchId)) {
    const unpaid = await sumUnpaid(tx, batchId)
    const [first, ...others] = waiting.filter(({ amount, controlTotal }) => -amount === controlTotal - unpaid)
    if (first === undefined) continue
    const { exceptionId, messageId, entryKey, bankFileId, line } = first
    const source = { rail, messageId, keyPrefix: entryKey, file: { id: bankFileId, line } }
    await endUnanswered(tx, { source, batchId, outcome: 'paid', now })
    await exceptions.closeApplied(tx, { id: exceptionId, now })
    for (const { exceptionId: id } of others)
      await exceptions.restate(tx, { id, kind: 'money_out', reason: debitedTwice })
  }
}
