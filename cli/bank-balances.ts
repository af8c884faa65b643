import { inWords } from '../src/kernel/money.ts'
import type { AccountDay } from '../src/payouts/books/balances.ts'
import type { Difference } from '../src/payouts/books/exceptions.ts'
import { table } from './print.ts'

/** How many days per account are shown by default. */
export const daysDefault = 7

/** The most sentences after the table. */
export const differencesMax = 20

/** @param options.differences the open differences of the comparison */
export function inTable(balances: AccountDay[], { differences = [] }: { differences?: Difference[] } = {}): string {
  const rows = table(
    balances.map(({ account, debtors, day, currency, bank, book, uncovered }) => {
      const words = (amount: bigint) => inWords({ amount, currency })
      return {
        account,
        'pays for': debtors.map(each => (each === 'default' ? 'partners without a separate account' : each)).join(', '),
        day,
        bank: words(bank),
        book: words(book),
        difference: words(bank - book),
        'not covered': words(uncovered),
      }
    }),
  )
  const stated = differences.map(({ id, reason }) => `! ${reason} (${id})`)
  return [rows, ...stated].join('\n')
}
