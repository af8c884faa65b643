import type { Float } from '../packages/console/src/generated/operator.ts'
import { inWords, type WireMoney } from '../src/kernel/money.ts'
import { table } from './print.ts'

/** @param floats as an operation returns them, or before they became JSON */
export function inTable(floats: (Omit<Float, 'lowSince'> & { lowSince: string | Date | null })[]): string {
  return table(
    floats.map(({ currency: code, float: there, pending, free, uncovered, floor, lowSince }) => ({
      currency: code,
      float: moneyInWords(there),
      pending: moneyInWords(pending),
      free: moneyInWords(free),
      'not covered': moneyInWords(uncovered),
      floor: floor && moneyInWords(floor),
      'low since': lowSince && new Date(lowSince).toISOString(),
    })),
  )
}

const moneyInWords = ({ amount, currency }: WireMoney) => inWords({ amount: BigInt(amount), currency })
