import type { BankAccount } from '../../bank-accounts/rules.ts'

/** The largest payment of each UK scheme, in pence: £20,000,000 for Bacs, £1,000,000 for Faster Payments. A bank may allow less. */
export const ukPaymentMax = { bacs: 2_000_000_000n, 'faster-payments': 100_000_000n } as const

export type UkScheme = keyof typeof ukPaymentMax

export function ukAccountRefusal(account: BankAccount): string | undefined {
  return 'sortCode' in account ? undefined : 'This bank only pays to a sort code and an account number'
}

/** Refuses payments to an IBAN, and those above the limit of the scheme. */
export function ukRefusal(scheme: UkScheme): (payment: { account: BankAccount; amount: bigint }) => string | undefined {
  return ({ account, amount }) =>
    ukAccountRefusal(account) ??
    (amount > ukPaymentMax[scheme] ? 'The amount is above the limit of the payment scheme' : undefined)
}
