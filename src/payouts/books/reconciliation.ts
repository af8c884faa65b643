import { type Columns, type Db, type Reader, sql, type Tx } from '../../database/database.ts'
import { firstId } from '../../kernel/ids.ts'
import { type Currency, inWords } from '../../kernel/money.ts'
import { addDays, type Day, daysBetween, startOfDay } from '../../kernel/time.ts'
import * as ledger from '../../ledger/ledger.ts'
import type { TaskContext } from '../../worker/task.ts'
import { type Calendar, CalendarEnded, isBankingDay } from '../calendars/calendar.ts'
import { partnersOn } from './balances.ts'
import { isUnpaid, paymentsWhere } from './bank-records.ts'
import { debtorsOf } from './debtors.ts'
import * as exceptions from './exceptions.ts'
import type { FileRailSettings } from './file-rail-settings.ts'
import { lockRail } from './rail-lock.ts'

// The bank's statements are compared with each other and with the books, so that money that moved without any answer is noticed.

const limits = {
  everyMs: 3_600_000,
  // How long money may be on its way between the books and the bank: a long weekend and the slowest booking. After that it is missing.
  transitDaysMax: 10,
}

/**
 * Compares the accounts of a rail with the books: after each import, and hourly. What does not add up is an exception, which is
 * closed when its cause is gone. It may be killed at any point and run again, also concurrently: the exceptions are recomputed.
 */
export async function reconcile({ db, now }: Pick<TaskContext, 'db' | 'now'>, rail: FileRailSettings): Promise<void> {
  if (!rail.format.readsStatements || !(await isDue(db, { rail: rail.name, now: now() }))) return
  const found = await db
    .transaction()
    .setIsolationLevel('repeatable read')
    .execute(tx => listDifferences(tx, { rail, now: now() }))
  await db.transaction().execute(async tx => {
    await lockRail(tx, { rail: rail.name, for: 'records' })
    await exceptions.keepStanding(tx, {
      ...{ rail: rail.name, kinds: exceptions.reconciliationKinds, now: now() },
      found: found.map(each => ({ rail: rail.name, ...each })),
    })
    await sql`
      insert into bank_reconciliations as r (rail, at) values (${rail.name}, ${now()})
          on conflict (rail) do update set at = greatest(r.at, excluded.at)`.execute(tx)
  })
}

async function isDue(db: Db, { rail, now }: { rail: string; now: Date }): Promise<boolean> {
  const { rows } = await sql<{ isDue: boolean }>`
    select not exists (
      select from bank_reconciliations r
       where r.rail = ${rail} and r.at > ${new Date(now.getTime() - limits.everyMs)}
         and not exists (select from bank_files f where f.rail = r.rail and f.received_at >= r.at)) as is_due`.execute(
    db,
  )
  return rows[0]?.isDue ?? true
}

type Difference = Pick<exceptions.NewException, 'kind' | 'fingerprint' | 'reason' | 'amount' | 'account' | 'bookedOn'>

/** A statement of an account. */
type Statement = Columns<
  'bankStatements',
  'account' | 'day' | 'electronicNumber' | 'legalNumber' | 'opening' | 'closing'
>

/** An account of the rail with its statements, oldest first. */
type Account = {
  /** Its debtors, which stay the same however a file writes its number. */
  key: string
  name: string
  debtors: string[]
  currency: Currency
  statements: Statement[]
}

async function listDifferences(tx: Tx, { rail, now }: { rail: FileRailSettings; now: Date }): Promise<Difference[]> {
  const found: Difference[] = []
  for (const account of await listAccounts(tx, rail)) {
    found.push(...gapsOf(account, rail.calendar), ...breaksOf(account))
    found.push(...(await compareWithBooks(tx, { rail, account, now })))
  }
  return found
}

async function listAccounts(db: Reader, rail: FileRailSettings): Promise<Account[]> {
  const { rows } = await sql<Statement>`
    select account, day, electronic_number, legal_number, opening, closing from bank_statements
     where rail = ${rail.name} order by day, electronic_number nulls first, legal_number nulls first`.execute(db)
  const byDebtors = Map.groupBy(rows, ({ account }) => debtorsNamed(rail, account).join())
  return [...byDebtors].flatMap(([key, statements]) => {
    const [{ account = '' } = {}] = statements
    const debtors = debtorsNamed(rail, account)
    // An account that was taken out of the settings.
    if (debtors.length === 0) return []
    return [{ key, name: inShort(account), debtors, currency: rail.currency, statements }]
  })
}

/** A file that names no account is about the rail's only account. */
function debtorsNamed(rail: FileRailSettings, account: string): string[] {
  return account === '' ? Object.keys(rail.debtors) : debtorsOf(rail, account)
}

function inShort(account: string): string {
  return account === '' ? 'the account' : `the account …${account.replaceAll(/[ -]/g, '').slice(-4)}`
}

/** The statements that are missing by their numbers. Banks begin again each year, or number by days. */
function gapsOf({ key, name, statements }: Account, calendar: Calendar | null): Difference[] {
  return (['electronicNumber', 'legalNumber'] as const).flatMap(series => {
    const numbered = statements.flatMap(({ day, account, [series]: number }) =>
      number === null ? [] : [{ day, account, number }],
    )
    return numbered.flatMap((statement, index) => {
      const { day, account, number } = statement
      const before = numbered[index - 1]
      if (before === undefined) return []
      const expected = number < before.number ? 1n : before.number + 1n
      if (number <= expected || isByDay(before, statement, calendar)) return []
      const last = number - 1n
      const missing = last === expected ? `Statement ${last}` : `Statements ${expected} to ${last}`
      const reason = `${missing} of ${name} ${last === expected ? 'is' : 'are'} missing, between those of ${before.day} and ${day}. Import what is missing`
      const fingerprint = `statement_gap ${key} ${series} ${expected} ${day}`
      return [{ kind: 'statement_gap', fingerprint, reason, account, bookedOn: day } as const]
    })
  })
}

/** Whether the numbers count days, of which the bank leaves out only those on which it is closed. */
function isByDay(
  one: { day: Day; number: bigint },
  next: { day: Day; number: bigint },
  calendar: Calendar | null,
): boolean {
  const days = daysBetween(one.day, next.day)
  if (calendar === null || next.number - one.number !== BigInt(days)) return false
  try {
    return Array.from({ length: days - 1 }, (_, index) => addDays(one.day, index + 1)).every(
      day => !isBankingDay(calendar, day),
    )
  } catch (error) {
    if (error instanceof CalendarEnded) return false
    throw error
  }
}

/** The statements that open with another balance than the one before them closed with. */
function breaksOf({ key, name, currency, statements }: Account): Difference[] {
  const closed = statements.flatMap(({ closing, ...each }) => (closing === null ? [] : [{ ...each, closing }]))
  const words = (amount: bigint) => inWords({ amount, currency })
  return statements.flatMap(statement => {
    const { account, day, opening } = statement
    const before = closed.findLast(each => each.day < day)
    if (opening === null || before === undefined) return []
    const possible = closed.filter(each => each.day === before.day || (each.day === day && !isSame(each, statement)))
    if (possible.some(({ closing }) => closing === opening)) return []
    const amount = opening - before.closing
    const reason = `The statement of ${name} of ${day} opens with ${words(opening)}, but that of ${before.day} closed with ${words(before.closing)}. Import what is missing between them, or ask the bank where ${words(amount)} comes from`
    const fingerprint = `opening_balance ${key} ${day} ${opening}`
    return [
      { kind: 'opening_balance', fingerprint, reason, amount: { amount, currency }, account, bookedOn: day } as const,
    ]
  })
}

function isSame(one: Omit<Statement, 'closing'>, other: Statement): boolean {
  return one.electronicNumber === other.electronicNumber && one.legalNumber === other.legalNumber
}

/** The part of the bank's latest balance that neither the books nor anything open explains, nor an operator has accepted. */
async function compareWithBooks(
  tx: Tx,
  { rail, account, now }: { rail: FileRailSettings; account: Account; now: Date },
): Promise<Difference[]> {
  const latest = account.statements.findLast(({ closing }) => closing !== null)
  if (latest === undefined || latest.closing === null) return []
  const { day, closing } = latest
  const { key, name, currency, debtors } = account
  const among = {
    partners: partnersOn(rail, debtors),
    day,
    since: startOfDay(rail.timeZone, addDays(day, -limits.transitDaysMax)),
  }
  // Everything that is booked now, even by a server whose clock is ahead.
  const instants = [new Date(now.getTime() + limits.everyMs)]
  const [book = 0n] = await ledger.sumFloatsAt(tx, { partners: among.partners, currency, instants })
  const asked = await sumAsked(tx, { rail, debtors, day })
  const onTheWay = (await sumPayments(tx, { rail, ...among })) + (await sumMovements(tx, { currency, ...among }))
  const unexplained = closing - book - asked - onTheWay
  const subject = `bank_balance ${key}`
  const earlier = await readEarlier(tx, { rail: rail.name, subject })
  const amount = unexplained - earlier.accepted
  if (amount === 0n) return []
  const words = (units: bigint) => inWords({ amount: units, currency })
  const [of, how] = amount < 0n ? [-amount, 'less'] : [amount, 'more']
  const parts = `books ${words(book)}, on the way ${words(onTheWay)}, other exceptions ${words(asked)}${earlier.accepted === 0n ? '' : `, accepted before ${words(earlier.accepted)}`}`
  const reason = `The bank’s balance of ${name} on ${day} is ${words(closing)}, which is ${words(of)} ${how} than anything explains (${parts}). Find the entry that nothing has booked; close this with ignore once the difference is explained`
  const fingerprint = earlier.open ?? `${subject} ${now.toISOString()}`
  const about = { amount: { amount, currency }, account: latest.account, bookedOn: day }
  return [{ kind: 'bank_balance', fingerprint, reason, ...about }]
}

/** Money of the account that exceptions leave to an operator, or that was closed as not ours. */
async function sumAsked(
  db: Reader,
  { rail, debtors, day }: { rail: FileRailSettings; debtors: string[]; day: Day },
): Promise<bigint> {
  const { rows } = await sql<{ account: string; amount: bigint }>`
    select coalesce(account, '') as account,
           sum(case when outcome = 'paid' and amount > 0 then -amount else amount end)::bigint as amount
      from payout_exceptions
     where rail = ${rail.name} and amount is not null and booked_on <= ${day}::date
       and kind <> all(${[...exceptions.reconciliationKinds]}::text[])
       and (closed_at is null or (decision = 'ignore' and kind in ('money_in', 'money_out', 'unmatched')))
     group by 1`.execute(db)
  const ofAccount = rows.filter(({ account }) => debtorsNamed(rail, account).join() === debtors.join())
  return ofAccount.reduce((sum, { amount }) => sum + amount, 0n)
}

type Among = { partners: ledger.PartnerSet; day: Day; since: Date }

function inSet(partners: ledger.PartnerSet, partnerId = sql`partner_id`) {
  return 'only' in partners
    ? sql`${partnerId} = any(${partners.only}::text[])`
    : sql`${partnerId} <> all(${partners.except}::text[])`
}

/** The amount that the bank has booked for recent payments until a day, less the amount in the books. */
async function sumPayments(
  db: Reader,
  { rail, partners, day, since }: Among & { rail: FileRailSettings },
): Promise<bigint> {
  const { rows } = await sql<{ sum: bigint }>`
    with recent as materialized (
      select p.partner_id, p.withdrawal_id from payouts p
       where p.batch_id = any(array(select id from payout_batches where rail = ${rail.name} and sending_at >= ${since}))
         and ${inSet(partners, sql`p.partner_id`)}
       union
      select of_account.id, t.movement_id
        from partners of_account
        join ledger_transfers t on t.partner_id = of_account.id
       where ${inSet(partners, sql`of_account.id`)} and t.id >= ${firstId('transfer', since)}
         and 'payouts_pending' in (t.debit, t.credit)
    ), sent as materialized (
      select p.reference, p.rail, p.batch_id, p.net_amount, p.outcome, w.status
        from recent
        join payouts p on p.partner_id = recent.partner_id and p.withdrawal_id = recent.withdrawal_id and p.rail = ${rail.name}
        join withdrawals w on w.partner_id = p.partner_id and w.id = p.withdrawal_id
       where p.removed_at is null and p.batch_id is not null
    ), unpaid as materialized (
      select p.batch_id, sum(p.net_amount)::bigint as sum
        from ${paymentsWhere(sql`
               batch_id = any(array(select batch_id from sent)) and removed_at is null and outcome in ('failed', 'returned')`)} p
       where ${isUnpaid} group by p.batch_id
    ), seen as (
      select p.net_amount, p.outcome, p.status,
             exists (select from bank_records r
                      where r.rail = p.rail and r.reference = p.reference and r.amount = -p.net_amount and r.booked_on <= ${day}::date)
             or exists (select from bank_records r
                         where r.rail = p.rail and r.reference = b.message_id and r.booked_on <= ${day}::date
                           and -r.amount = b.control_total - coalesce(u.sum, 0))
             or ${isAttached(day, sql`e.amount < 0`)} as is_debited,
             exists (select from bank_records r
                      where r.rail = p.rail and r.reference = p.reference and r.booked_on <= ${day}::date
                        -- Outcomes recorded by hand can be less a charge.
                        and (r.amount = p.net_amount or (r.amount > 0 and r.message_id = 'operator')))
             or ${isAttached(day, sql`e.amount > 0`)} as is_credited
        from sent p join payout_batches b on b.id = p.batch_id left join unpaid u on u.batch_id = p.batch_id
    )
    select coalesce(sum(net_amount * (case when outcome in ('paid', 'returned') and is_debited then -1 else 0 end
                                  + case when outcome = 'returned' and is_credited then 1 else 0 end
                                  + case when status = 'paid' then 1 else 0 end)), 0)::bigint as sum
      from seen`.execute(db)
  return rows[0]?.sum ?? 0n
}

/** SQL: an operator has attached a booked entry to the payment `p`. */
function isAttached(day: Day, direction: ReturnType<typeof sql>) {
  return sql`exists (select from bank_records r join payout_exceptions e on e.id = split_part(r.entry_key, ' ', 1)
                      where r.rail = p.rail and r.reference = p.reference and r.message_id = 'operator'
                        and e.decision = 'attach' and e.booked_on <= ${day}::date and ${direction})`
}

/** Recent float movements that the bank had not booked by a day; negative if they increased the floats. */
async function sumMovements(
  db: Reader,
  { partners, day, since, currency }: Among & { currency: Currency },
): Promise<bigint> {
  const { rows } = await sql<{ sum: bigint }>`
    with moved as materialized (
      select t.debit, t.amount, t.movement_id from partners of_account
     cross join lateral (select t.partner_id, t.debit, t.amount, t.movement_id from ledger_transfers t
                          where t.partner_id = of_account.id and t.id >= ${firstId('transfer', since)} and t.currency = ${currency}
                            and 'float' in (t.debit, t.credit)) t
     where ${inSet(partners, sql`of_account.id`)}
       and not exists (select from withdrawals w where w.partner_id = t.partner_id and w.id = t.movement_id)
    )
    select coalesce(sum(case when t.debit = 'float' then -t.amount else t.amount end), 0)::bigint as sum
      from moved t
     where not exists (select from bank_records r left join payout_exceptions e on e.id = split_part(r.entry_key, ' ', 1)
                        where r.movement_id = t.movement_id
                          and coalesce(r.booked_on, e.booked_on, ${day}::date) <= ${day}::date)`.execute(db)
  return rows[0]?.sum ?? 0n
}

/** The differences of an account that operators have accepted, and the open exception. */
async function readEarlier(
  db: Reader,
  { rail, subject }: { rail: string; subject: string },
): Promise<{ accepted: bigint; open: string | null }> {
  const { rows } = await sql<{ accepted: bigint; open: string | null }>`
    select coalesce(sum(amount) filter (where decision = 'ignore'), 0)::bigint as accepted,
           max(fingerprint) filter (where closed_at is null) as open
      from payout_exceptions
     where rail = ${rail} and kind = 'bank_balance' and starts_with(fingerprint, ${`${subject} `})`.execute(db)
  return rows[0] ?? { accepted: 0n, open: null }
}
