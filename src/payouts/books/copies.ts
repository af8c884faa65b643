import { type Reader, sql, type Tx } from '../../database/database.ts'
import { dayIn } from '../../kernel/time.ts'

// Each time that the file of a batch left, or may have left, is a copy: an attempt to deliver it, even one that was killed, an
// export into a folder, a download.

export type CopyKind = 'delivery' | 'export' | 'download'

/** @property person null for the worker, which delivers */
export type Copy = { number: number; kind: CopyKind; person: string | null; at: Date }

/** @property timeZone the bank's, which decides the day */
export type NewCopy = { batchId: string; kind: CopyKind; person: string | null; timeZone: string; now: Date }

/** Records that the file of a batch is about to leave. The caller holds the lock of the batch. @returns the number of the copy */
export async function record(tx: Tx, { batchId, kind, person, timeZone, now }: NewCopy): Promise<number> {
  const { rows } = await sql<{ number: number }>`
    insert into payout_batch_copies (batch_id, number, kind, person, at, day)
    select ${batchId}, coalesce(max(number), 0) + 1, ${kind}, ${person}::text, ${now}, ${dayIn(timeZone, now)}::date
      from payout_batch_copies where batch_id = ${batchId}
    returning number`.execute(tx)
  return rows[0]?.number ?? 0
}

/** Forgets a copy that certainly did not leave. */
export async function forget(tx: Tx, { batchId, number }: { batchId: string; number: number }): Promise<void> {
  await sql`
    delete from payout_batch_copies where batch_id = ${batchId} and number = ${number}`.execute(tx)
}

/** The copies of a batch's file, oldest first. */
export async function list(db: Reader, batchId: string): Promise<Copy[]> {
  const { rows } = await sql<Copy>`
    select number, kind, person, at from payout_batch_copies where batch_id = ${batchId} order by number`.execute(db)
  return rows
}

/** How a file left, for the operator: who had it, and when. */
export function inWords(all: readonly Copy[]): string {
  const verbs = { delivery: 'delivered', export: 'exported', download: 'downloaded' } as const
  return all
    .slice(-3)
    .map(({ kind, person, at }) => `${verbs[kind]} by ${person ?? 'the worker'} at ${at.toISOString()}`)
    .join(', ')
}
