import { setTimeout as pause } from 'node:timers/promises'
import { type Db, type Reader, sql, type Tx } from '../database/database.ts'
import { isLockTimeout } from '../database/errors.ts'
import { numberOf } from '../database/migration-file.ts'
import { listOlderPrograms, refuseOlderPrograms } from '../database/migrations.ts'
import { lockByName } from '../database/named-locks.ts'
import { readColumns } from '../database/read-columns.ts'
import { isSpread } from '../database/spread.ts'
import { listUninvoiced } from '../fees/invoices.ts'
import { firstId } from '../kernel/ids.ts'
import { snakeCase } from '../kernel/text.ts'
import type { Day } from '../kernel/time.ts'
import { listDetached } from '../ledger/detached.ts'
import type { Mode } from '../partners/partners.ts'
import { sealedAccounts } from './rules.ts'
import { allowLongReads } from './walks.ts'

// Detaches the transfers of past years, and attaches them again. The caller is the owner of the tables: the program may run no DDL.

const limits = {
  // All writers of transfers queue behind the lock of a table with partitions, so it is awaited for a moment, and again after a pause.
  lockMs: 100,
  pauseMs: 2_000,
  attemptsMax: 60,
  namedMax: 20,
}

// Programs that do not know it would read balances and statements without the sums of what is detached.
const migration = '0002_detached_years'

const columns = sql.join(
  readColumns
    .filter(([table]) => table === 'ledgerTransfers')
    .flatMap(([, names]) => names.map(name => sql.ref(snakeCase(name)))),
)
const accounts = sql.join(sealedAccounts.map(account => sql.ref(account)))

/**
 * The months of a year that are left to detach, oldest first.
 * @throws Error with a line for each reason why the year cannot be detached
 */
export async function planDetaching(db: Reader, { year, now }: { year: number; now: Date }): Promise<Day[]> {
  const end = new Date(Date.UTC(year + 1, 0))
  await requireOneDatabase(db)
  await requireNoOlderProgram(db)
  if (now < end) throw new Error(`${year} is not over: only whole past years are detached`)
  const detached = (await listDetached(db)).map(({ month }) => month)
  const attached = (await listMonths(db)).filter(month => !detached.includes(month))
  const months = attached.filter(month => yearOf(month) === year)
  if (months.length === 0)
    throw new Error(
      detached.some(month => yearOf(month) === year)
        ? `The transfers of ${year} are detached already`
        : `There are no transfers of ${year}`,
    )
  const earlier = attached.filter(month => yearOf(month) < year)
  const obstacles = [
    ...(earlier[0] === undefined
      ? []
      : [`Transfers of ${yearOf(earlier[0])} are not detached: detach that year first`]),
    ...(await findObstacles(db, { year, end })),
  ]
  if (obstacles.length > 0) throw new Error(obstacles.join('\n'))
  return months
}

async function requireOneDatabase(db: Reader): Promise<void> {
  if (await isSpread(db)) throw new Error('Transfers that are spread over nodes are neither detached nor attached')
}

async function requireNoOlderProgram(db: Reader): Promise<void> {
  const [oldest] = await listOlderPrograms(db, numberOf(migration))
  if (oldest !== undefined)
    throw new Error(
      `Programs are running that do not know detached years (${oldest.connections} connections): replace or stop them, then run this command again`,
    )
}

/** The months with an own partition of transfers. */
async function listMonths(db: Reader): Promise<Day[]> {
  const { rows } = await sql<{ suffix: string }>`
    select substr(relname, length('ledger_transfers_') + 1) as suffix
      from pg_inherits join pg_class c on c.oid = inhrelid
     where inhparent = 'public.ledger_transfers'::regclass and relname <> 'ledger_transfers_default' order by 1`.execute(
    db,
  )
  return rows.map(({ suffix }) => `${suffix.replace('_', '-')}-01`)
}

const yearOf = (month: Day) => Number(month.slice(0, 4))
const nameOf = (month: Day) => `ledger_transfers_${month.slice(0, 7).replace('-', '_')}`

/** The bounds of a month's partition. */
async function idsOf(tx: Tx, month: Day): Promise<{ first: string; next: string }> {
  const { rows } = await sql<{ first: string; next: string }>`
    select first, next from ids_of_month('ledger_transfers', ${month}::date)`.execute(tx)
  const [ids] = rows
  if (ids === undefined) throw new Error(`${month} has no bounds`)
  return ids
}

const modeObstacles: Readonly<Record<Mode | 'none', string[]>> = {
  live: [],
  // A partner of a sandbox can be reset, which deletes its transfers.
  sandbox: ['The transfers of a sandbox are not detached'],
  none: ['The database was never started, so it is not known to be live; start it once with MIDMONTH_MODE=live'],
}

const refunded = 'More fees refunded than charged'

/** Names the obstacles to detaching the time until the end of a year: open matters, whose later transfers could belong to that time. */
async function findObstacles(db: Reader, { year, end }: { year: number; end: Date }): Promise<string[]> {
  type Open = { partner: string | null; obstacle: string; count: number }
  const uninvoiced = await listUninvoiced(db, end)
  const { rows } = await sql<Open>`
    select p.name || ' (' || p.id || ')' as partner, obstacle, count(*)::integer as count
      from (select c.partner_id, 'Pay cycles that are not settled and sealed' as obstacle
              from pay_cycles c
              left join ledger_seals s on s.partner_id = c.partner_id and s.pay_cycle_id = c.id
             where c.created_at < ${end} and (c.settled_at is null or s.sealed_at is null)
               and exists (select from ledger_transfers t
                            where t.partner_id = c.partner_id and t.pay_cycle_id = c.id and (t.debit = 'earned_pay' or t.credit = 'earned_pay'))
             union all
            select d.partner_id, 'Settlements whose money has not arrived'
              from settlement_dues d join pay_cycles c on c.partner_id = d.partner_id and c.id = d.pay_cycle_id
             where c.created_at < ${end} and d.received <> d.amount
             union all
            select partner_id, 'Withdrawals that are not finished' from unpaid_withdrawals
             where due_at is not null and withdrawal_id < ${firstId('withdrawal', end)}
             union all
            select partner_id, 'Open payout exceptions' from payout_exceptions
             where closed_at is null and (opened_at < ${end} or withdrawal_id < ${firstId('withdrawal', end)})
             union all
            select p.id, 'Transfers in the default partition'
              from partners p
             cross join lateral (select from ledger_transfers_default t where t.partner_id = p.id and t.id < ${firstId('transfer', end)} limit 1) t
             union all
            select partner_id, case when is_credit
                                    then ${refunded}
                                    else 'Fees of employers that are not invoiced' end
              from unnest(${uninvoiced.map(({ partnerId }) => partnerId)}::text[], ${uninvoiced.map(({ isCredit }) => isCredit)}::boolean[])
                     as uninvoiced (partner_id, is_credit)
           ) o left join partners p on p.id = o.partner_id
     group by p.id, p.name, obstacle order by obstacle, p.id`.execute(db)
  const { rows: installation } = await sql<{ mode: Mode }>`select mode from installation`.execute(db)
  const unnamed = rows.length - limits.namedMax
  return [
    ...modeObstacles[installation[0]?.mode ?? 'none'],
    ...rows
      .slice(0, limits.namedMax)
      .map(
        ({ partner, obstacle, count }) =>
          `${obstacle} ${obstacle === refunded ? `before the end of ${year}; a later invoice must offset them` : `from before the end of ${year}`}: ${partner ?? 'no partner'} (${count})`,
      ),
    ...(unnamed > 0 ? [`and ${unnamed} more`] : []),
  ]
}

/**
 * Detaches a month of transfers, in one transaction that leaves the month as it was if it is killed. What no seal covers stays: the
 * transfers without a member, which are few, and which balances of the partner are read from.
 * @param options.record writes to the audit log
 * @throws Error if a transfer of the month is not sealed, or the table stays locked; nothing has changed then
 */
export async function detachMonth(
  db: Db,
  { month, now, record }: { month: Day; now: Date; record: (tx: Tx) => Promise<void> },
): Promise<void> {
  const name = nameOf(month)
  const table = sql.table(`public.${name}`)
  await db.transaction().execute(async tx => {
    await allowLongReads(tx)
    await lockByName(tx, 'months of', 'transfers')
    await sql`lock table ${table} in share mode`.execute(tx)
    if ((await listDetached(tx)).some(each => each.month === month)) return
    await requireSealed(tx, { table, month })
    await refuseOlderPrograms(tx, migration)
    await addToSums(tx, { table, year: yearOf(month) })
    await sql`
      insert into detached_months (month, transfers, detached_at) select ${month}, count(*), ${now} from ${table}`.execute(
      tx,
    )
    await sql`create temporary table kept on commit drop as ${unsealedOf(table)}`.execute(tx)
    await record(tx)
    await underShortLocks(tx, async () => {
      await sql`alter table public.ledger_transfers detach partition ${table}`.execute(tx)
      await sql`alter table ${table} set schema detached`.execute(tx)
      // The triggers of the whole table have gone with it.
      await sql`
        create trigger detached_append_only before update or delete on ${sql.table(`detached.${name}`)}
          for each row execute function public.refuse_change('ledger_transfers')`.execute(tx)
      await sql`select make_partition('ledger_transfers', ${month}::date)`.execute(tx)
      await sql`insert into ${table} (${columns}) select ${columns} from kept`.execute(tx)
    })
  })
}

type Table = ReturnType<typeof sql>

const sealsOf = sql`
  left join ledger_member_seals s on s.partner_id = t.partner_id and s.member_id = t.member_id and s.currency = t.currency
  left join ledger_seals c on c.partner_id = t.partner_id and c.pay_cycle_id = t.pay_cycle_id and c.sealed_at is not null`

/** Refuses a month with a transfer that is not sealed, or belongs to a movement or cycle that begins after the month. */
async function requireSealed(tx: Tx, { table, month }: { table: Table; month: Day }): Promise<void> {
  const timeOf = (id: string) => sql`split_part(${sql.ref(id)}, '_', 2)`
  const { next } = await idsOf(tx, month)
  const after = next.replace('tr_', '')
  const { rows } = await sql<{ partnerId: string; id: string }>`
    select t.partner_id, t.id from ${table} t ${sealsOf}
     where case when t.member_id is not null then t.member_sequence > coalesce(s.sequence, 0)
                else t.reason = 'withdrawal.paid' and c.partner_id is null end
        or (t.member_id is not null or t.reason = 'withdrawal.paid')
           and (${timeOf('t.movement_id')} >= ${after} or ${timeOf('t.pay_cycle_id')} >= ${after})
     limit 1`.execute(tx)
  const [found] = rows
  if (found !== undefined)
    throw new Error(`The transfer ${found.id} of ${found.partnerId} is not sealed, or belongs to something newer`)
}

async function addToSums(tx: Tx, { table, year }: { table: Table; year: number }): Promise<void> {
  const balanceOf = (account: string) => sql`
    sum(case when t.credit = ${sql.lit(account)} then t.amount when t.debit = ${sql.lit(account)} then -t.amount else 0 end)::bigint`
  const adding = sealedAccounts.map(name => sql`${sql.ref(name)} = m.${sql.ref(name)} + excluded.${sql.ref(name)}`)
  await sql`
    insert into detached_member_sums as m (year, partner_id, member_id, currency, transfers, sequence, pay_cycle_id, ${accounts})
    select ${year}::integer, t.partner_id, t.member_id, t.currency, count(*), max(t.member_sequence),
           (array_agg(t.pay_cycle_id order by t.member_sequence desc) filter (where 'member_available' in (t.debit, t.credit)))[1],
           ${sql.join(sealedAccounts.map(balanceOf))}
      from ${table} t where t.member_id is not null
     group by t.partner_id, t.member_id, t.currency
        on conflict (partner_id, member_id, currency, year) do update
       set transfers = m.transfers + excluded.transfers, sequence = greatest(m.sequence, excluded.sequence),
           pay_cycle_id = coalesce(excluded.pay_cycle_id, m.pay_cycle_id), ${sql.join(adding)}`.execute(tx)
  await sql`
    insert into detached_payment_sums as p (year, partner_id, pay_cycle_id, currency, amount)
    select ${year}::integer, t.partner_id, t.pay_cycle_id, t.currency, sum(t.amount)::bigint
      from ${table} t ${sealsOf}
     where t.member_id is null and t.reason = 'withdrawal.paid' and t.movement_id <> all(c.unfinished_withdrawals)
     group by t.partner_id, t.pay_cycle_id, t.currency
        on conflict (partner_id, pay_cycle_id, currency, year) do update set amount = p.amount + excluded.amount`.execute(
    tx,
  )
}

/** The transfers of a sealed month that no seal covers. */
function unsealedOf(table: Table) {
  return sql`
    select ${columns} from ${table} t where t.member_id is null and t.reason <> 'withdrawal.paid'
     union all
    select ${columns} from ${table} t
     where t.member_id is null and t.reason = 'withdrawal.paid'
       and (t.partner_id, t.movement_id) in (
             select c.partner_id, unfinished.id from ledger_seals c cross join unnest(c.unfinished_withdrawals) as unfinished (id)
              where c.sealed_at is not null)`
}

/**
 * Attaches the transfers of a year again, in one transaction, after each month was checked in its own.
 * @throws Error if they are not detached, or are not what was detached; nothing has changed then
 */
export async function attach(
  db: Db,
  { year, record }: { year: number; record: (tx: Tx) => Promise<void> },
): Promise<Day[]> {
  await requireOneDatabase(db)
  const detached = (await listDetached(db)).map(({ month }) => month)
  const months = detached.filter(month => yearOf(month) === year)
  if (months.length === 0) throw new Error(`The transfers of ${year} are not detached`)
  const last = detached.at(-1)
  if (last !== undefined && yearOf(last) !== year)
    throw new Error(`Transfers of ${yearOf(last)} are detached: attach that year first`)
  for (const month of months) await db.transaction().execute(tx => prepareMonth(tx, month))
  await db.transaction().execute(async tx => {
    await allowLongReads(tx)
    await lockByName(tx, 'months of', 'transfers')
    if (!(await listDetached(tx)).some(({ month }) => month === months[0])) return
    for (const month of months) {
      await sql`lock table ${sql.table(`public.${nameOf(month)}`)} in share mode`.execute(tx)
      await mergeKeptTransfers(tx, nameOf(month))
    }
    for (const sums of ['member_sums', 'payment_sums'])
      await sql`delete from ${sql.table(`detached_${sums}`)} where year = ${year}`.execute(tx)
    await sql`delete from detached_months where month = any(${months}::date[])`.execute(tx)
    await record(tx)
    await underShortLocks(tx, async () => {
      for (const month of months) await swapBack(tx, month)
    })
  })
  return months
}

/** Checks a month while nothing else uses it, so that attaching it does not read it again under its locks. */
async function prepareMonth(tx: Tx, month: Day): Promise<void> {
  await lockByName(tx, 'months of', 'transfers')
  const name = nameOf(month)
  const { first, next } = await idsOf(tx, month)
  await allowLongReads(tx)
  const { rows } = await sql<{ exists: boolean }>`
    select to_regclass(${`detached.${name}`}) is not null as exists`.execute(tx)
  if (rows[0]?.exists !== true) throw new Error(`detached.${name} does not exist: restore it from your dump first`)
  const table = sql.table(`detached.${name}`)
  const { rows: counted } = await sql<{ found: bigint; transfers: bigint }>`
    select (select count(*) from ${table}) as found, transfers from detached_months where month = ${month}`.execute(tx)
  const [count] = counted
  if (count !== undefined && count.found !== count.transfers)
    throw new Error(`detached.${name} has ${count.found} transfers of the ${count.transfers} that were detached`)
  await sql`alter table ${table} drop constraint if exists of_its_month`.execute(tx)
  await sql`
    alter table ${table} add constraint of_its_month
      check (id >= ${sql.lit(first)} and id < ${sql.lit(next)})`.execute(tx)
}

/** Adds what the clock of a process has written into a detached month, and refuses what has stayed but is no longer there. */
async function mergeKeptTransfers(tx: Tx, name: string): Promise<void> {
  const [kept, whole] = [sql.table(`public.${name}`), sql.table(`detached.${name}`)]
  await sql`
    insert into ${whole} (${columns}) select ${columns} from ${kept} k
     where not exists (select from ${whole} w where w.partner_id = k.partner_id and w.id = k.id)`.execute(tx)
  const { rows } = await sql<{ id: string }>`
    select id from (select ${columns} from ${kept} except select ${columns} from ${whole}) d limit 1`.execute(tx)
  if (rows[0] !== undefined) throw new Error(`The transfer ${rows[0].id} is not the same in detached.${name}`)
}

async function swapBack(tx: Tx, month: Day): Promise<void> {
  const name = nameOf(month)
  const { first, next } = await idsOf(tx, month)
  const table = sql.table(`public.${name}`)
  await sql`alter table public.ledger_transfers detach partition ${table}`.execute(tx)
  await sql`drop table ${table}`.execute(tx)
  await sql`drop trigger detached_append_only on ${sql.table(`detached.${name}`)}`.execute(tx)
  await sql`alter table ${sql.table(`detached.${name}`)} set schema public`.execute(tx)
  await sql`
    alter table public.ledger_transfers attach partition ${table}
      for values from (${sql.lit(first)}) to (${sql.lit(next)})`.execute(tx)
  await sql`alter table ${table} drop constraint of_its_month`.execute(tx)
}

/** Runs what locks the table of all months, at the end of a transaction. Gives way to others, and tries again after a pause. */
async function underShortLocks(tx: Tx, work: () => Promise<void>): Promise<void> {
  await sql`
    select set_config('lock_timeout', ${`${limits.lockMs}ms`}, true), set_config('idle_in_transaction_session_timeout', '0', true)`.execute(
    tx,
  )
  for (let attempt = 1; ; attempt++) {
    await sql`savepoint before_locks`.execute(tx)
    try {
      return await work()
    } catch (error) {
      if (!isLockTimeout(error) || attempt === limits.attemptsMax) throw error
      await sql`rollback to savepoint before_locks`.execute(tx)
      await pause(limits.pauseMs * (0.5 + Math.random()))
    }
  }
}
