import { type Columns, sql, type Tx } from '../../database/database.ts'
import { conflict, problem } from '../../kernel/errors.ts'
import type { Restriction } from '../../members/restrictions.ts'
import type { FinalOutcome } from '../../withdrawals/lifecycle.ts'
import * as batches from './batches.ts'
import { byName } from './by-reference.ts'
import { reasonInWords } from './reasons.ts'
import { type BookedByDecision, recordOutcome } from './reports.ts'

/**
 * A payment, as far as a decision about it needs it.
 * @property requestOpenAt when the latest request that may have made the payment was sent
 * @property transferId the bank's id, if it has accepted a request
 * @property expectedAt when the payee should have the money
 */
export type DecidedPayment = Columns<
  'payouts',
  | 'reference'
  | 'rail'
  | 'partnerId'
  | 'withdrawalId'
  | 'batchId'
  | 'netAmount'
  | 'currency'
  | 'outcome'
  | 'requestOpenAt'
  | 'transferId'
  | 'expectedAt'
> & {
  /** It was sent to the bank by a request, not in a file. */
  isSentAlone: boolean
}

/** @param payment its reference, or the withdrawal's id. @throws Problem `NotFound` */
export async function lockPayout(tx: Tx, payment: string): Promise<DecidedPayment> {
  return await findPayout(tx, payment, { lock: true })
}

/** Locks several payments, in the order in which all code locks those of a batch. */
export async function lockPayouts(tx: Tx, references: readonly string[]): Promise<DecidedPayment[]> {
  const payouts: DecidedPayment[] = []
  for (const reference of [...new Set(references)].sort()) payouts.push(await lockPayout(tx, reference))
  return payouts
}

/** Like `lockPayout`, without the lock. */
export async function findPayout(tx: Tx, payment: string, { lock: locks = false } = {}): Promise<DecidedPayment> {
  const isNamed = await byName(tx, payment)
  const { rows } = await sql<DecidedPayment>`
    select reference, rail, partner_id, withdrawal_id, batch_id, net_amount, currency, outcome,
           sent_at is not null as is_sent_alone, request_open_at, transfer_id, expected_at
      from payouts where ${isNamed()} ${locks ? sql`for update` : sql``}`.execute(tx)
  const [payout] = rows
  if (payout === undefined) throw problem('NotFound', `There is no payment ${payment}`)
  return payout
}

/** The prefix of the keys of records in which an operator states the outcome of a payment, without an answer of the bank. */
export const byHandPrefix = 'by hand '

type DecidedOutcome = {
  payout: DecidedPayment
  key: string
  outcome: FinalOutcome
  reasonCode: string | null
  restriction: Restriction | null
  booked?: BookedByDecision | undefined
  now: Date
}

/** Records the outcome of a payment that a person has decided. @throws Problem `Conflict` if it has not been sent */
export async function end(
  tx: Tx,
  { payout, key, outcome, reasonCode, restriction, booked, now }: DecidedOutcome,
): Promise<void> {
  const { reference, rail, batchId, isSentAlone } = payout
  const batch = batchId === null ? undefined : await batches.get(tx, batchId)
  // An unsent batch would still pay it.
  if (!isSentAlone && (batch === undefined || batch.sentAt === null))
    throw conflict(`The payment ${reference} has not been sent; take it out of its batch instead`)
  const reason = reasonInWords(reasonCode)
  const ended = { rail, reference, messageId: 'operator', entryKey: key, now }
  await recordOutcome(tx, { ...ended, outcome, reasonCode, reason, restriction, booked })
  await batches.settleAnswered(tx, { rail, now })
}

/** Refuses to fail a payment that the bank may have made, or may still make. @param reported the outcome that the bank reports */
export function refuseIfPayable(
  { reference, rail, requestOpenAt, transferId }: DecidedPayment,
  reported: FinalOutcome | null,
): void {
  if (requestOpenAt !== null)
    throw conflict(
      `The request for ${reference} of ${requestOpenAt.toISOString()} may have been accepted, so its money cannot be given back yet. The worker asks the bank at least once an hour; try again after that. It cannot ask unless ${rail} is in MIDMONTH_RAILS, so configure the rail again if it was taken out. If requests are repeated without an answer, hold the rail ${rail} first`,
    )
  // Only an exception can show that the transfer has ended without being paid.
  if (transferId !== null && reported !== 'failed' && reported !== 'returned')
    throw conflict(
      `The bank has accepted ${reference} and may still pay it, so its money cannot be given back. The worker asks for the outcome`,
    )
}
