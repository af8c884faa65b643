import { create } from '../../src/payouts/payouts.ts'
import { backOffFrom } from '../../src/payouts/rules.ts'
import type { submitDue } from '../../src/withdrawals/withdrawals.ts'
import { scopeOfTests } from '../harness/lanes.ts'

/** The options with which a worker claims due withdrawals for the simulated bank: of all partners, or on Citus of one. */
export function claimingAt(now: Date, partnerId: string): Parameters<typeof submitDue>[1] & { rail: string } {
  const rail = 'simulated-bank'
  return {
    rail,
    now,
    scope: scopeOfTests(partnerId),
    countMax: 1_000,
    nextPollAt: backOffFrom(now),
    nameForBank: (tx, claimed) => create(tx, { rail, claimed, now }),
  }
}
