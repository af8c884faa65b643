import { type Reader, sql } from '../../database/database.ts'
import type { Currency } from '../../kernel/money.ts'
import { addDays, type Day, startOfDay } from '../../kernel/time.ts'
import * as ledger from '../../ledger/ledger.ts'
import { debtorOf, debtorsOf } from './debtors.ts'
import type { FileRailSettings } from './file-rail-settings.ts'

/** An account of a rail at the end of a day, in minor units. */
export type AccountDay = {
  rail: string
  /** The account as the bank names it. */
  account: string
  /** The ids of the partners whose floats are on the account, and 'default' for all partners without a separate account. */
  debtors: string[]
  day: Day
  currency: Currency
  /** The balance that the bank states. */
  bank: bigint
  /** The sum of the floats on the account. */
  book: bigint
  /** The part that these floats lack because the operator bears a cost that was not covered yet. */
  uncovered: bigint
}

/**
 * Compares the balances that the bank has stated for a rail's accounts with the floats on them at the end of the same day in the bank's
 * time zone. By account, newest day first.
 * @param options.partnerId only the account that pays for this partner
 * @param options.daysMax per account
 */
export async function listBalances(
  db: Reader,
  rail: FileRailSettings,
  { partnerId, daysMax }: { partnerId?: string | undefined; daysMax: number },
): Promise<AccountDay[]> {
  const { rows } = await sql<{ account: string; day: Day; currency: Currency; bank: bigint }>`
    select account, day, currency, closing as bank
      from (select s.*, row_number() over (partition by account order by day desc) as place
              from (select distinct on (account, day) * from bank_statements where rail = ${rail.name} and closing is not null
                     order by account, day desc, electronic_number desc nulls last, legal_number desc nulls last) s) stated
     where place <= ${daysMax}
     order by account, day desc`.execute(db)
  const compared: AccountDay[] = []
  for (const [account, stated] of Map.groupBy(rows, row => row.account)) {
    // A file that names no account is about the rail's only account.
    const debtors = account === '' ? Object.keys(rail.debtors) : debtorsOf(rail, account)
    const isAsked = partnerId === undefined || debtors.includes(debtorOf(rail, partnerId))
    if (debtors.length === 0 || !isAsked) continue
    const asked = {
      partners: partnersOn(rail, debtors),
      currency: rail.currency,
      instants: stated.map(({ day }) => startOfDay(rail.timeZone, addDays(day, 1))),
    }
    const books = await ledger.sumFloatsAt(db, asked)
    const costs = await ledger.sumOperatorCostsAt(db, asked)
    for (const [index, each] of stated.entries()) {
      const sums = { book: books[index] ?? 0n, uncovered: costs[index] ?? 0n }
      compared.push({ rail: rail.name, debtors, ...each, ...sums })
    }
  }
  return compared
}

/** The partners that an account pays for. */
export function partnersOn({ debtors: all }: FileRailSettings, debtors: string[]): ledger.PartnerSet {
  if (!debtors.includes('default')) return { only: debtors }
  return { except: Object.keys(all).filter(key => !debtors.includes(key)) }
}
