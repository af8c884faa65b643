import { type Reader, sql, type Tx } from '../../database/database.ts'
import type { Day } from '../../kernel/time.ts'
import type { Restriction } from '../../members/restrictions.ts'
import type { FinalOutcome } from '../../withdrawals/lifecycle.ts'
import { type Report, type StoredReport, toReport } from '../payments/payment.ts'
import { byOneReference, referencedPayouts } from './by-reference.ts'

/** Reads the records of a rail that keeps books, as `Rail.reports` does. The cursor is the sequence of the last record. */
export async function readRecords(
  db: Reader,
  { rail, after, countMax }: { rail: string; after: string | null; countMax: number },
): Promise<{ reports: Report[]; cursor: string | null }> {
  const { rows } = await sql<StoredReport & { sequence: bigint }>`
    select r.sequence, r.reference, r.outcome, r.reason, p.restriction,
           (select x.recovery_id from bank_records x
             where x.rail = r.rail and x.reference = r.reference and x.recovery_id is not null and x.sequence <= r.sequence
             order by x.sequence desc limit 1) as recovery_id
      from bank_records r left join (${referencedPayouts}) on f.reference = r.reference and p.outcome = r.outcome
     where r.rail = ${rail} and r.outcome is not null and r.sequence > ${after ?? '0'}::bigint
     order by r.sequence limit ${countMax}`.execute(db)
  return { reports: rows.map(toReport), cursor: rows.at(-1)?.sequence.toString() ?? after }
}

/**
 * @property exceptionId the exception that reported the entry. If it names the payment's reference, another entry of the day is told apart
 */
export type BookedByDecision = { day: Day; amount: bigint; exceptionId?: string }

/**
 * SQL: the bank's reference of a payment's entry that an exception reports. An entry that names a payment only in words is reported again
 * by name.
 */
function bankReferenceOf(exceptionId: string | undefined) {
  return sql<string | null>`(
    select r.bank_reference from payout_exceptions e
      join bank_records r on r.rail = e.rail and e.fingerprint = r.message_id || ' ' || r.entry_key
     where e.id = ${exceptionId ?? null} and r.reference = e.reference)`
}

/** The outcome of a payment, and its source. */
export type EndedPayment = {
  rail: string
  reference: string
  /** Together they identify the record, which counts once. */
  messageId: string
  entryKey: string
  outcome: FinalOutcome
  /** The bank's code, verbatim. */
  reasonCode?: string | null
  /** The reason as partners and members read it. */
  reason?: string | null
  restriction?: Restriction | null
  /** The entry of the account that moved the money, if a person says so; negative if it left. */
  booked?: BookedByDecision | undefined
  now: Date
}

/** Records the outcome of a payment, and reports it, so that the withdrawal follows. The caller holds the lock of the records. */
export async function recordOutcome(tx: Tx, ended: EndedPayment): Promise<void> {
  const { reference, outcome, reasonCode = null, reason = null, restriction = null } = ended
  const isNamed = await byOneReference(tx, reference)
  await sql`
    update payouts
       set outcome = ${outcome}, reason_code = ${reasonCode}, reason = ${reason}, restriction = ${restriction}
     where ${isNamed()}`.execute(tx)
  await addRecord(tx, ended)
}

type NewRecord = Omit<EndedPayment, 'outcome' | 'reasonCode' | 'restriction'> & { outcome: FinalOutcome | null }

/** Stores a statement about a payment, and reports its outcome unless the payment's latest report has the same. */
export async function addRecord(
  tx: Tx,
  { rail, reference, messageId, entryKey, outcome, reason = null, booked, now }: NewRecord,
): Promise<void> {
  await sql`
    insert into bank_records (rail, message_id, entry_key, reference, outcome, reason, booked_on, amount, bank_reference, created_at)
    values (${rail}, ${messageId}, ${entryKey}, ${reference}, ${outcome}, ${reason}, ${booked?.day}::date, ${booked?.amount},
            ${bankReferenceOf(booked?.exceptionId)}, ${now})`.execute(tx)
}
