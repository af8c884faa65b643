import { type Reader, sql } from '../../database/database.ts'
import { conflict } from '../../kernel/errors.ts'
import { isBatchReference, isReference } from '../payments/reference.ts'
import { hasReference } from './by-reference.ts'
import * as exceptions from './exceptions.ts'
import { findRestore } from './restores.ts'
import { debitOf } from './write-offs.ts'

/** The exceptions whose money is not ours, or is a difference that an operator has explained. */
const canBeIgnored: readonly exceptions.ExceptionKind[] = [
  ...(['money_in', 'money_out', 'unmatched'] as const),
  ...exceptions.reconciliationKinds,
]

/**
 * Refuses to ignore money that the bank has booked for a payment or batch of ours.
 * @throws Problem `Conflict` that names the decisions that fit
 */
export async function refuseIfOurs(db: Reader, exception: exceptions.Decided): Promise<void> {
  const { rail, kind, reference, amount, currency, bookedOn } = exception
  if (kind === 'refused') await refuseIfLagging(db, exception)
  if (kind === 'amount' && bookedOn === null) await refuseIfAdvised(db, exception)
  await refuseIfSentBeforeRestore(db, exception)
  if (amount === null || bookedOn === null || canBeIgnored.includes(kind)) return
  const { rows } = await sql<{ isBatch: boolean }>`
    select false as is_batch from payouts where rail = ${rail} and ${hasReference(reference ?? '')} and currency = ${currency}
    union all
    select true from payout_batches
     where rail = ${rail} and message_id = ${reference} and currency = ${currency}`.execute(db)
  const [ours] = rows
  if (ours === undefined) return
  const booked = debitOf(exception) === null ? 'The bank has credited' : 'The bank has debited'
  throw conflict(
    `${booked} ${reference}, which is ours, and ignoring it would leave the money out of the books; ${fitting(exception, ours)}`,
  )
}

/** Refuses to drop a report that its withdrawal lacks. */
async function refuseIfLagging(db: Reader, { withdrawalId, reference, outcome }: exceptions.Decided): Promise<void> {
  const { rows } = await sql`
    select from withdrawals w left join payouts p on p.withdrawal_id = w.id and p.partner_id = w.partner_id
     where w.id = ${withdrawalId} and w.status <> ${outcome}
       and coalesce(p.outcome, ${outcome}) = ${outcome}`.execute(db)
  if (rows.length > 0)
    throw conflict(
      `The withdrawal of ${reference} is not ${outcome} yet, and ignoring this would leave its money out of the books; fix what the exception names, and the next reading records the report`,
    )
}

/** Refuses to ignore an advice that money came back less a charge: ARUCS gives no day. */
async function refuseIfAdvised(db: Reader, { rail, reference, outcome, amount }: exceptions.Decided): Promise<void> {
  if (outcome !== 'returned' || amount === null) return
  const { rows } = await sql`
    select from payouts where rail = ${rail} and reference = ${reference} and net_amount > ${amount}
       and (outcome is null or outcome = 'paid')`.execute(db)
  if (rows.length > 0)
    throw conflict(
      `The bank has returned ${reference}, which is ours, and ignoring it would leave the money out of the books; give it back with the charge that the bank kept`,
    )
}

/** Refuses to ignore a debit that names a payment or batch in our form, which the books have lost by a restore. */
async function refuseIfSentBeforeRestore(db: Reader, exception: exceptions.Decided): Promise<void> {
  const { reference, bankText } = exception
  if (debitOf(exception) === null || (await findRestore(db)) === undefined) return
  const named = [reference ?? '', ...(bankText ?? '').split(/[^A-Z0-9]+/)]
  const ours = named.find(name => isReference(name) || isBatchReference(name))
  if (ours === undefined) return
  throw conflict(
    `The bank has debited ${ours}, which may have been sent after the backup, and would be sent again; attach the debit to its payments, or write it off if the books do not have them`,
  )
}

function fitting(exception: exceptions.Decided, { isBatch }: { isBatch: boolean }): string {
  if (exception.kind === 'paid_after_give_back') return 'recover it, or write it off'
  if (debitOf(exception) !== null && isBatch)
    return 'give_back the payments that the bank did not make, attach it to the batch with the charge that the bank took, or write it off'
  if (debitOf(exception) !== null)
    return 'attach it to the payment, with the charge that the bank took, or write it off'
  if (exception.kind === 'contradiction')
    return 'recover the payment and then attach this return, or book it as money of the partner'
  return 'attach it to the payment or give it back, with the charge that the bank kept, or book it as money of the partner'
}
