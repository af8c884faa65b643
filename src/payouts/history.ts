import { type Columns, type Reader, sql } from '../database/database.ts'
import { problem } from '../kernel/errors.ts'
import type { FinalOutcome } from '../withdrawals/lifecycle.ts'
import * as batches from './books/batches.ts'
import { byName } from './books/by-reference.ts'
import * as exceptions from './books/exceptions.ts'
import { listProposals, type Proposal } from './books/proposals.ts'

const limits = {
  // A payment has one or two answers, and its batch a few. More come only from a bank that repeats itself.
  answersMax: 100,
  exceptionsMax: 100,
}

/** Who ended a payment. `midmonth`: the rail cannot carry it, or the bank confirms no payments and the time for returns is over. */
export const answerSources = ['bank', 'operator', 'midmonth'] as const

/** What a bank said about a payment or its batch, or what was decided instead. */
type PaymentAnswer = {
  at: Date
  by: (typeof answerSources)[number]
  isAboutBatch: boolean
  /** Null if it changed nothing about the payment. */
  outcome: FinalOutcome | null
  reason: string | null
  bookedOn: string | null
  /** Null if the answer is in no file. */
  fileName: string | null
  line: number | null
}

type Payment = Columns<
  'payouts',
  | 'reference'
  | 'rail'
  | 'partnerId'
  | 'withdrawalId'
  | 'netAmount'
  | 'currency'
  | 'createdAt'
  | 'expectedAt'
  | 'outcome'
  | 'reasonCode'
  | 'reason'
  | 'removedAt'
>

/** A payment with its batch, and with everything that its bank said. */
export type PaymentHistory = Payment & {
  batch: batches.Batch | null
  answers: PaymentAnswer[]
  exceptions: exceptions.Exception[]
  /** An outcome that takes two people, and that one has recorded. */
  proposal: Proposal | undefined
}

/**
 * Reads what became of a payment.
 * @param wanted its reference, or the withdrawal's id
 * @throws Problem `NotFound`
 */
export async function readHistory(db: Reader, wanted: string): Promise<PaymentHistory> {
  const isNamed = await byName(db, wanted)
  const { rows } = await sql<Payment & { batchId: string | null }>`
    select reference, rail, partner_id, withdrawal_id, net_amount, currency, created_at, expected_at, outcome, reason_code, reason,
           removed_at, batch_id
      from payouts where ${isNamed()}`.execute(db)
  const [row] = rows
  if (row === undefined) throw problem('NotFound', `There is no payment ${wanted}`)
  const { batchId, ...payment } = row
  const { rail, reference } = payment
  const batch = batchId === null ? null : await batches.get(db, batchId)
  const references = [reference, ...(batch === null ? [] : [batch.messageId])]
  return {
    ...payment,
    batch,
    answers: await listAnswers(db, { rail, reference, references }),
    exceptions: await exceptions.listAbout(db, { rail, references, take: limits.exceptionsMax }),
    proposal: (await listProposals(db, [reference]))[0],
  }
}

async function listAnswers(
  db: Reader,
  { rail, reference, references }: { rail: string; reference: string; references: string[] },
): Promise<PaymentAnswer[]> {
  const { rows } = await sql<PaymentAnswer>`
    select r.created_at as at,
           case when r.bank_file_id is not null then 'bank'
                when r.message_id = 'operator' then 'operator'
                when r.message_id = 'refused' or r.entry_key like 'unanswered %' then 'midmonth'
                else 'bank' end as by,
           r.reference <> ${reference} as is_about_batch, r.outcome, r.reason, r.booked_on, f.name as file_name,
           r.line
      from bank_records r left join bank_files f on f.id = r.bank_file_id
     where r.rail = ${rail} and r.reference = any(${references}::text[])
     order by r.sequence limit ${limits.answersMax}`.execute(db)
  return rows
}
