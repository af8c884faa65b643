import type { TierTerms } from '../../src/tiers/terms.ts'

// Without the harness, so that tests of rules start no program.

export const bronze: TierTerms = {
  ...{ feeFixed: 50n, feeBps: 100, feeMin: 50n, feeMax: 300n, feePayer: 'member' },
  ...{ lowerLimit: 1000n, upperLimit: 20000n, withdrawalsPerDay: null, withdrawalsPerCycle: null, payoutSpeed: null },
}
export const silver: TierTerms = { ...bronze, feeBps: 0, feeMin: null, feeMax: null }
export const gold: TierTerms = { ...silver, feePayer: 'employer' }

/** An account that passes the modulus check, and one that fails. */
export const goodAccount = { accountHolder: 'Sam Okafor', sortCode: '089999', accountNumber: '66374958' }
export const badAccount = { accountHolder: 'Sam Okafor', sortCode: '089999', accountNumber: '66374959' }
export const euAccount = { accountHolder: 'Mia Schulz', iban: 'DE89370400440532013000' }
