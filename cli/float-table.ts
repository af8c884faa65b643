import type { Float } from '../packages/console/src/generated/operator.ts'
import { moneyInWords, table } from './print.ts'

export function inTable(floats: Float[]): string {
  return table(
    floats.map(({ currency: code, float: there, pending, free, uncovered, floor, lowSince }) => ({
      currency: code,
      float: moneyInWords(there),
      pending: moneyInWords(pending),
      free: moneyInWords(free),
      'not covered': moneyInWords(uncovered),
      floor: floor && moneyInWords(floor),
      'low since': lowSince,
    })),
  )
}
