import type { Currency } from '../kernel/money.ts'
import type { Transfer } from '../ledger/ledger.ts'
import type { WithdrawalStatus } from './lifecycle.ts'

type Booked = {
  memberId: string
  currency: Currency
  /** Reaches the member's account. */
  netAmount: bigint
  /** The two fees; at least one of them is zero. */
  fee: bigint
  employerFee: bigint
}

/**
 * The transfers that are booked when a withdrawal enters a state. A refund reverses what was booked on completion, from
 * the account where the money is by then: pending, or the float that a returned payment goes back to.
 * @param payCycleId the withdrawal's own cycle; for a refund after that has closed, the open one
 */
export function transfersOnEntering(status: WithdrawalStatus, withdrawal: Booked, payCycleId: string): Transfer[] {
  const { memberId, currency, netAmount, fee, employerFee } = withdrawal
  const ofMember = { currency, memberId, payCycleId }
  switch (status) {
    case 'held':
      return withoutZeros([
        { debit: 'member_available', credit: 'payouts_pending', amount: netAmount, ...ofMember },
        { debit: 'member_available', credit: 'fees', amount: fee, ...ofMember },
        { debit: 'partner_fees', credit: 'fees', amount: employerFee, ...ofMember },
      ])
    case 'submitted':
      return []
    case 'paid':
      return [{ debit: 'payouts_pending', credit: 'float', amount: netAmount, currency, payCycleId }]
    case 'cancelled':
    case 'failed':
    case 'returned':
      return withoutZeros([
        {
          debit: status === 'returned' ? 'float' : 'payouts_pending',
          credit: 'member_available',
          amount: netAmount,
          ...ofMember,
        },
        { debit: 'fees', credit: 'member_available', amount: fee, ...ofMember },
        { debit: 'fees', credit: 'partner_fees', amount: employerFee, ...ofMember },
      ])
    default:
      return status satisfies never
  }
}

/**
 * The transfers that are booked when the bank has paid a withdrawal although its money was given back: net and fee as quoted. The
 * member's part comes from the available balance, the net first; the rest is owed.
 * @param taken the part from the available balance; at most net and fee
 * @param payCycleId the open cycle
 */
export function transfersOnRecovering(
  { memberId, currency, netAmount, fee, employerFee }: Booked,
  { taken, payCycleId }: { taken: bigint; payCycleId: string },
): Transfer[] {
  const ofMember = { currency, memberId, payCycleId }
  const takenOfNet = taken < netAmount ? taken : netAmount
  const takenOfFee = taken - takenOfNet
  return withoutZeros([
    { debit: 'member_available', credit: 'float', amount: takenOfNet, ...ofMember },
    { debit: 'member_owed', credit: 'float', amount: netAmount - takenOfNet, ...ofMember },
    { debit: 'member_available', credit: 'fees', amount: takenOfFee, ...ofMember },
    { debit: 'member_owed', credit: 'fees', amount: fee - takenOfFee, ...ofMember },
    { debit: 'partner_fees', credit: 'fees', amount: employerFee, ...ofMember },
  ])
}

// The books hold no transfer of zero: a fee is borne by the member, by the employer, or there is none.
function withoutZeros(transfers: Transfer[]): Transfer[] {
  return transfers.filter(({ amount }) => amount > 0n)
}
