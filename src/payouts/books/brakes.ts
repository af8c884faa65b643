import { type Reader, sql, type Tx } from '../../database/database.ts'
import type { Day } from '../../kernel/time.ts'
import { debtorsOf } from './debtors.ts'
import type { FileRailSettings } from './file-rail-settings.ts'

// After a whole batch was given back, no batch of its rail is approved automatically until the bank's statement shows that the bank
// did not pay it after all. So a reason that was misjudged costs one batch, not one batch a day.

/** A batch that was given back, and the day whose statement must arrive before batches of its rail are approved automatically again. */
export type Brake = {
  rail: string
  batchId: string
  messageId: string
  debtor: string
  since: Date
  /** The day on which the bank would have executed the batch: its value date, or the day on which its last copy left. */
  awaits: Day
}

/** The brakes of one rail, or of all, oldest first. */
export async function listBrakes(db: Reader, { rail }: { rail?: string | undefined } = {}): Promise<Brake[]> {
  const { rows } = await sql<Brake>`
    select b.rail, b.id as batch_id, b.message_id, b.debtor, b.given_back_at as since,
           greatest(b.value_date, (select max(day) from payout_batch_copies where batch_id = b.id)) as awaits
      from payout_batches b
     where b.given_back_at is not null and b.brake_released_at is null
           ${rail === undefined ? sql`` : sql`and b.rail = ${rail}`}
     order by b.given_back_at, b.id`.execute(db)
  return rows
}

/** Tells the operator why batches of a rail await approval by people. */
export function brakeInWords({ messageId, since, awaits }: Omit<Brake, 'rail' | 'debtor'>): string {
  return `The batch ${messageId} was given back at ${since.toISOString()}, so the batches of its rail need approval by people until the bank's statement of ${awaits} shows that it was not paid`
}

/**
 * Releases the brakes of a rail that a statement has answered: the statement covers the awaited day of the account that pays, and no
 * exception about the batch, or about a debit of the same sum, waits for a decision. The caller holds the lock of the rail's batches.
 * @param settings undefined if the bank of the rail sends no statements: nothing could release a brake, so there is none
 */
export async function releaseBrakes(
  tx: Tx,
  { rail, settings, now }: { rail: string; settings: FileRailSettings | undefined; now: Date },
): Promise<void> {
  for (const { batchId, debtor, awaits } of await listBrakes(tx, { rail })) {
    if (settings !== undefined && !(await isCovered(tx, { rail: settings, debtor, day: awaits }))) continue
    // An import applies statements and their debits in several transactions, so only a file that was imported whole counts.
    await sql`
      update payout_batches b set brake_released_at = ${now}
       where id = ${batchId}
         and not exists (
           select from payout_exceptions e
            where e.rail = b.rail and e.closed_at is null
              and (e.reference = b.message_id or e.amount = -b.control_total
                   or e.reference in (select reference from payouts where batch_id = ${batchId})))`.execute(tx)
  }
}

export async function isCovered(
  tx: Tx,
  { rail, debtor, day }: { rail: FileRailSettings; debtor: string; day: Day },
): Promise<boolean> {
  const { rows } = await sql<{ account: string }>`
    select distinct s.account from bank_statements s join bank_files f on f.id = s.bank_file_id and f.status = 'imported'
     where s.rail = ${rail.name} and ${day}::date between s.covers_from and s.day`.execute(tx)
  return rows.some(({ account }) => debtorsOf(rail, account).includes(debtor))
}
