import { type Reader, sql, type Tx } from '../../database/database.ts'
import type { Day } from '../../kernel/time.ts'
import type { Restriction } from '../../members/restrictions.ts'
import type { FinalOutcome } from '../../withdrawals/lifecycle.ts'
import { type Report, type StoredReport, toReport } from '../payments/payment.ts'
import { hasReference, referencedPayouts } from './by-reference.ts'

/** Reads what a rail with own books has recorded, as `Rail.reports` does. The cursor is the sequence of the last record. */
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

/** @property exceptionId which reported the entry: if by the payment's reference, another entry of the day is told apart from it */
export type BookedByDecision = { day: Day; amount: bigint; exceptionId?: string }

/** SQL: the bank's reference of the entry of a payment that an exception reports. What names a payment in words is told again by name. */
function bankReferenceOf(exceptionId: string | undefined) {
  return sql<string | null>`(
    select r.bank_reference from payout_exceptions e
      join bank_records r on r.rail = e.rail and e.fingerprint = r.message_id || ' ' || r.entry_key
     where e.id = ${exceptionId ?? null} and r.reference = e.reference)`
}

/** What became of a payment, and where that is known from. */
export type EndedPayment = {
  rail: string
  reference: string
  /** Together they recognise the record: each counts once. */
  messageId: string
  entryKey: string
  outcome: FinalOutcome
  /** The bank's code, verbatim. */
  reasonCode?: string | null
  /** What partners and members read. */
  reason?: string | null
  restriction?: Restriction | null
  /** The entry of the account that moved the money, if a person says so; negative if it left. */
  booked?: BookedByDecision | undefined
  now: Date
}

/** Records the outcome of a payment, and reports it, so that the withdrawal follows. The caller holds the lock of the records. */
export async function recordOutcome(tx: Tx, ended: EndedPayment): Promise<void> {
  const { reference, outcome, reasonCode = null, reason = null, restriction = null } = ended
  await sql`
    update payouts
       set outcome = ${outcome}, reason_code = ${reasonCode}, reason = ${reason}, restriction = ${restriction}
     where ${hasReference(reference)}`.execute(tx)
  await addRecord(tx, ended)
}

/** Keeps what is said of a payment, and reports its outcome if it has one that is not the payment's latest. */
export async function addRecord(
  tx: Tx,
  {
    rail,
    reference,
    messageId,
    entryKey,
    outcome,
    reason = null,
    booked,
    now,
  }: Omit<EndedPayment, 'outcome' | 'reasonCode' | 'restriction'> & { outcome: FinalOutcome | null },
): Promise<void> {
  await sql`
    insert into bank_records (rail, message_id, entry_key, reference, outcome, reason, booked_on, amount, bank_reference, created_at)
    values (${rail}, ${messageId}, ${entryKey}, ${reference}, ${outcome}, ${reason}, ${booked?.day}::date, ${booked?.amount},
            ${bankReferenceOf(booked?.exceptionId)}, ${now})`.execute(tx)
}
