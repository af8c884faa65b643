import { type Reader, sql } from '../database/database.ts'
import { problem } from '../kernel/errors.ts'
import { firstId } from '../kernel/ids.ts'
import { type Currency, inDecimals } from '../kernel/money.ts'
import { addDays, type Day, daysBetween, startOfDay } from '../kernel/time.ts'
import { requireAttached } from '../ledger/detached.ts'
import { findState, listTimeZones } from '../partners/partners.ts'
import { csvLines } from '../tabular/tabular.ts'

/** The amount debited or credited to an account on a day for one cause. Lines with the same reference and currency balance. */
type JournalLine = {
  partnerId: string
  day: Day
  reference: string
  reason: string
  account: string
  currency: Currency
  /** In minor units; one of the two is zero. */
  debit: bigint
  credit: bigint
}

// A year, leap day included.
export const journalDaysMax = 366

/**
 * Opens the journal of a partner, or of all, as the lines of a file, with amounts in decimals.
 * @throws Problem `QueryValidation` if the days are too many, in the wrong order or detached; `NotFound` if there is no such partner
 */
export async function openJournal(
  db: Reader,
  { partnerId, firstDay, lastDay }: { partnerId?: string | undefined; firstDay: Day; lastDay: Day },
): Promise<AsyncGenerator<string>> {
  const days = daysBetween(firstDay, lastDay) + 1
  if (days < 1) throw problem('QueryValidation', 'to must not be before from', { path: 'to' })
  if (days > journalDaysMax)
    throw problem('QueryValidation', `The journal has at most ${journalDaysMax} days; export it in parts`, {
      path: 'to',
    })
  const partners = partnerId === undefined ? await listTimeZones(db) : [await findState(db, partnerId)]
  for (const { timeZone } of partners)
    await requireAttached(db, startOfDay(timeZone, firstDay), { path: 'from', timeZone })
  return linesOf(readJournal(db, { partners, firstDay, lastDay }))
}

async function* linesOf(journal: AsyncIterable<JournalLine[]>): AsyncGenerator<string> {
  yield csvLines([['day', 'partner_id', 'reference', 'reason', 'account', 'debit', 'credit', 'currency']])
  for await (const lines of journal) {
    yield csvLines(
      lines.map(({ day, partnerId, reference, reason, account, debit, credit, currency }) => {
        const cell = (amount: bigint) => (amount === 0n ? '' : { number: inDecimals({ amount, currency }) })
        return [day, partnerId, reference, reason, account, cell(debit), cell(credit), currency]
      }),
    )
  }
}

// Day by day of each partner's time zone, so that the size of a statement is bounded.
async function* readJournal(
  db: Reader,
  { partners, firstDay, lastDay }: { partners: { id: string; timeZone: string }[]; firstDay: Day; lastDay: Day },
): AsyncGenerator<JournalLine[]> {
  for (const { id: partnerId, timeZone } of partners) {
    for (let day = firstDay; day <= lastDay; day = addDays(day, 1)) {
      const [from, to] = [startOfDay(timeZone, day), startOfDay(timeZone, addDays(day, 1))]
      const lines = await readDay(db, { partnerId, day, from, to })
      if (lines.length > 0) yield lines
    }
  }
}

// The many withdrawals and pay runs of a day are summed into one entry per reason, without members. Every other movement is a
// separate entry, to compare with the bank's. Ids begin with the time, so a day is a range of the primary key.
async function readDay(
  db: Reader,
  { partnerId, day, from, to }: { partnerId: string; day: Day; from: Date; to: Date },
): Promise<JournalLine[]> {
  const { rows } = await sql<JournalLine>`
    with entries as (
      select t.reason, t.debit, t.credit, t.amount, t.currency,
             case when t.reason like 'withdrawal.%' or t.reason like 'pay_run.%' then ${day}::text || ' ' || t.reason else t.movement_id end as entry
        from ledger_transfers t
       where t.partner_id = ${partnerId} and t.id >= ${firstId('transfer', from)} and t.id < ${firstId('transfer', to)}
    ), summed as (
      select reason, entry, account, currency, sum(debited) as debit, sum(credited) as credit, side
        from entries
       cross join lateral (values (debit, amount, 0, 'debit'), (credit, 0, amount, 'credit')) as line (account, debited, credited, side)
       group by reason, entry, account, currency, side
    )
    select ${partnerId}::text as partner_id, ${day}::text as day, coalesce(f.reference, s.entry) as reference, s.reason, s.account, s.currency,
           s.debit::bigint, s.credit::bigint
      from summed s
      left join float_references f on f.partner_id = ${partnerId} and f.movement_id = s.entry
     order by s.entry, s.reason, s.currency, s.side desc, s.account`.execute(db)
  return rows
}
