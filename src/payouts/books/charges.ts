import type { Tx } from '../../database/database.ts'
import * as float from '../../float/float.ts'
import { conflict } from '../../kernel/errors.ts'
import { inWords, type Money } from '../../kernel/money.ts'
import type { FinalOutcome } from '../../withdrawals/lifecycle.ts'
import { recordMovement } from './bank-records.ts'
import type { DecidedPayment } from './decided-payments.ts'

/** A charge that a bank kept from a return or payment, or took beside a payment, and who bears it. */
export type Charge = { amount: Money; borneBy: 'operator' | 'partner' }

type ChargedPayment = {
  payout: DecidedPayment
  outcome: FinalOutcome
  amount: bigint | null
  charge: Charge | undefined
}

/**
 * Refuses money that is not exactly the amount of a payment, less or plus the charge that the decision names: a bank keeps a charge from a
 * return, and takes one beside a payment or deducts it from the payment.
 * @param amount of the entry, with either sign
 * @throws Problem `Conflict`
 */
export function requireCharge({
  payout: { reference, netAmount: paid, currency },
  outcome,
  amount,
  charge,
}: ChargedPayment): void {
  if (charge !== undefined && charge.amount.currency !== currency) throw conflict(`The charge must be in ${currency}`)
  const named = charge?.amount.amount ?? 0n
  if (named >= paid)
    throw conflict(
      `A charge must be less than its payment, and the payment ${reference} is for ${inWords({ amount: paid, currency })}`,
    )
  if (amount === null) {
    if (named > 0n) throw conflict('The answer gives no amount, so it cannot have a charge')
    return
  }
  const entry = amount < 0n ? -amount : amount
  const difference = outcome === 'returned' || entry < paid ? paid - entry : entry - paid
  if (difference === named && (difference === 0n || outcome !== 'failed')) return
  const words = (units: bigint) => inWords({ amount: units, currency })
  if (difference > 0n && outcome !== 'failed')
    throw conflict(
      `The bank ${outcome === 'returned' ? 'returned' : 'debited'} ${words(entry)}, and the payment ${reference} is for ${words(paid)}; name the charge of ${words(difference)}`,
    )
  throw conflict(`The answer gives another amount, not that of the payment ${reference}`)
}

type BorneCharge = {
  rail: string
  exceptionId: string | null
  partnerId: string
  charge: Charge
  isDeducted?: boolean
  now: Date
}

/**
 * Books a charge that a bank took from the account.
 * @param isDeducted whether the bank deducted it from a payment, so that the charge never left: the float keeps it, and its bearer owes it
 *   to the payee
 * @param exceptionId null if the decision closes none
 */
export async function bearCharge(
  tx: Tx,
  { rail, exceptionId, partnerId, charge: { amount, borneBy }, isDeducted = false, now }: BorneCharge,
): Promise<void> {
  const { movementId } = isDeducted
    ? await float.keepDeducted(tx, { partnerId, amount, now })
    : borneBy === 'operator'
      ? await float.bearCost(tx, { partnerId, amount, exceptionId, now })
      : await float.chargePartner(tx, { partnerId, amount, now })
  await recordMovement(tx, {
    rail,
    key: exceptionId === null ? `charge ${movementId}` : `${exceptionId} charge`,
    reference: '',
    movementId,
    now,
  })
}
