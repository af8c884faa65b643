import type { RecordedMovement } from '../packages/console/src/generated/operator.ts'
import { inWords, type WireMoney } from '../src/kernel/money.ts'

/** Formats money of a response: '12.50 GBP'. */
export function moneyInWords({ amount, currency }: WireMoney): string {
  return inWords({ amount: BigInt(amount), currency })
}

/** Says, above the result, that a reference was already used, so that nothing moved. */
export function repeatedInWords({ reference, at, hasMoved }: RecordedMovement): string[] {
  return hasMoved ? [] : [`"${reference}" was already recorded on ${at}; nothing changed.`, '']
}
