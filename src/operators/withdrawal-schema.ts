import { Type } from 'typebox'
import { Id } from '../kernel/ids.ts'
import { toWire, WireMoney } from '../kernel/money.ts'
import { described, namedObject, nullable, wordOf } from '../kernel/schemas.ts'
import { Instant, InstantOrNull } from '../kernel/time.ts'
import { type Inspected, stuckReasons } from '../withdrawals/inspection.ts'
import { WithdrawalStatus } from '../withdrawals/schema.ts'

/** A withdrawal as operators see it, across all partners. */
export const inspectedFields = {
  id: Id('withdrawal'),
  partnerId: Id('partner'),
  memberId: Id('member'),
  withdrawalIntentId: Id('withdrawalIntent'),
  payCycleId: Id('payCycle'),
  status: WithdrawalStatus,
  amount: WireMoney,
  netAmount: WireMoney,
  fee: WireMoney,
  employerFee: WireMoney,
  createdAt: Instant,
  dueAt: described(InstantOrNull, 'When its next step with the bank is due; null if there is none.'),
  attempts: Type.Integer({ minimum: 0, description: 'Calls to the bank so far.' }),
  reason: nullable(Type.String(), 'Why it entered its status, in the words of the bank or of the caller.'),
  adjustedInCycleId: nullable(
    Id('payCycle'),
    'The pay cycle that its refund was booked in, if its own had closed by then.',
  ),
  stuck: nullable(wordOf(stuckReasons), 'Why it needs attention; null if it does not.'),
}

export const InspectedWithdrawal = namedObject('InspectedWithdrawal', inspectedFields)

export function inspectedView({ grossAmount, netAmount, fee, employerFee, currency, ...withdrawal }: Inspected) {
  const money = (amount: bigint) => toWire({ amount, currency })
  return {
    ...withdrawal,
    amount: money(grossAmount),
    netAmount: money(netAmount),
    fee: money(fee),
    employerFee: money(employerFee),
  }
}
