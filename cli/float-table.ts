import type { Float } from '../packages/console/src/generated/operator.ts'
import { moneyInWords } from './money.ts'
import { table } from './print.ts'

export function inTable(floats: Float[]): string {
  return table(
    floats.map(({ currency, float, pending, free, uncovered, floor, lowSince }) => ({
      currency,
      float: moneyInWords(float),
      pending: moneyInWords(pending),
      free: moneyInWords(free),
      'not covered': moneyInWords(uncovered),
      floor: floor && moneyInWords(floor),
      'low since': lowSince,
    })),
  )
}
