import type { AccountDay } from '../packages/console/src/generated/operator.ts'
import { moneyInWords } from './money.ts'
import { table } from './print.ts'

/** How many days per account are shown by default. */
export const daysDefault = 7

/** The most sentences after the table. */
export const differencesMax = 20

/** @param options.differences the open differences of the comparison */
export function inTable(
  accountDays: AccountDay[],
  { differences = [] }: { differences?: { id: string; reason: string }[] } = {},
): string {
  const rows = table(
    accountDays.map(({ account, debtors, day, bank, book, difference, uncovered }) => ({
      account,
      'pays for': debtors.map(each => (each === 'default' ? 'partners without a separate account' : each)).join(', '),
      day,
      bank: moneyInWords(bank),
      book: moneyInWords(book),
      difference: moneyInWords(difference),
      'not covered': moneyInWords(uncovered),
    })),
  )
  const stated = differences.map(({ id, reason }) => `! ${reason} (${id})`)
  return [rows, ...stated].join('\n')
}
