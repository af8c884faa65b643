/** The largest payment of each UK scheme, in pence: £20,000,000 for Bacs, £1,000,000 for Faster Payments. */
export const ukPaymentMax = { bacs: 2_000_000_000n, 'faster-payments': 100_000_000n } as const
