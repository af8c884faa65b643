import { lastFour } from '../bank-accounts/rules.ts'
import { type Currency, toWire } from '../kernel/money.ts'
import { lowestAmount } from '../tiers/rules.ts'
import { termsToWire } from '../tiers/terms.ts'
import type { Balance } from './balance.ts'
import type { Explanation } from './explanation.ts'
import { expectedAt } from './lifecycle.ts'
import type * as withdrawals from './withdrawals.ts'

// Response bodies for both the partner and the member.

export function balanceBody({ tier, available, payCycle, lastPayDate, isTemporarilyUnavailable }: Balance) {
  const { currency } = tier
  const { id, startDate, endDate } = payCycle
  return {
    available: toWire({ amount: available, currency }),
    lowerLimit: toWire({ amount: lowestAmount(tier), currency }),
    upperLimit: toWire({ amount: tier.upperLimit, currency }),
    payCycle: { id, startDate, endDate, lastPayDate },
    isTemporarilyUnavailable,
  }
}

export function itemBody({ id, netAmount, fee, currency, payCycleId, memberId, createdAt }: withdrawals.Withdrawal) {
  return {
    id,
    netAmount: toWire({ amount: netAmount, currency }),
    fee: toWire({ amount: fee, currency }),
    payCycleId,
    memberId,
    createdAt,
  }
}

export function ownDetailsBody(
  withdrawal: withdrawals.Details,
  { bankOf }: { bankOf: (currency: Currency) => 'simulated' | 'connected' | null },
) {
  const { withdrawalIntentId, status, currency, grossAmount, account, balanceAfter, timeline } = withdrawal
  return {
    ...itemBody(withdrawal),
    withdrawalIntentId,
    status,
    amount: toWire({ amount: grossAmount, currency }),
    bankAccount: { lastFour: lastFour(account) },
    balanceAfter: toWire({ amount: balanceAfter, currency }),
    timeline,
    expectedAt: expectedAt(withdrawal, { isSimulated: bankOf(currency) === 'simulated' }),
    paymentReference: withdrawal.reference,
  }
}

/** The body for the partner. Members do not see metadata. */
export function detailsBody(withdrawal: withdrawals.Details, context: Parameters<typeof ownDetailsBody>[1]) {
  return { ...ownDetailsBody(withdrawal, context), metadata: withdrawal.metadata }
}

export function explanationBody({ intent, tier, rules }: Explanation) {
  const { id, memberId, payCycleId, grossAmount, netAmount, fee, employerFee, createdAt } = intent
  const { name, version, currency, since } = tier
  const money = (of: bigint) => toWire({ amount: of, currency })
  return {
    withdrawalIntentId: id,
    inputs: { memberId, payCycleId, amount: money(grossAmount), createdAt },
    tier: { name, version, since, ...termsToWire(tier, currency) },
    rules: rules.map(({ amount: given, ...rule }) => ({ ...rule, amount: money(given) })),
    result: { fee: money(fee), employerFee: money(employerFee), netAmount: money(netAmount) },
  }
}
