import type { RawBuilder } from 'kysely'
import { cachedSql } from '../database/cached-sql.ts'
import { type Reader, sql, type Tx } from '../database/database.ts'
import { keepOnNode, onNodeOf, onOnePartner, onPartnersNode } from '../database/one-partner.ts'
import { firstId, newId } from '../kernel/ids.ts'
import type { Currency } from '../kernel/money.ts'

/**
 * The accounts of the books (docs/internals/ledger.md). `earned_pay` is one per pay cycle and member; `member_available`,
 * `member_owed` and `carried` are one per member; the others are one per partner. All of them are per currency.
 */
type Account =
  | 'earned_pay'
  | 'member_available'
  | 'member_owed'
  | 'carried'
  | 'written_off'
  | 'payouts_pending'
  | 'float'
  | 'funding'
  | 'fees'
  | 'partner_fees'
  | 'payroll_receivable'
  | 'operator_costs'
  | 'revenue'
  | 'fees_receivable'
  | 'operator_account'

/** One movement of an amount between two accounts; `amount` is positive, in minor units. */
export type Transfer = {
  debit: Account
  credit: Account
  amount: bigint
  currency: Currency
  memberId?: string
  payCycleId?: string
}

/**
 * Transfers with one cause.
 * `movementId`: the pay run, withdrawal or other resource that caused them.
 * `reason`: a reason of docs/internals/ledger.md, such as 'withdrawal.held'.
 */
export type Movement = { partnerId: string; movementId: string; reason: string; transfers: Transfer[]; now: Date }

/**
 * Books a movement and updates the members' balances. Only this module writes `ledger_*`.
 *
 * First releases the unused pay of an ended cycle of each member whose available balance changes, so that pay of two cycles is
 * never mixed. Members whom closing has not reached yet are thus closed by the first movement that concerns them. The caller's
 * rules have counted their unused pay as zero.
 *
 * The caller has locked the members in id order, because this updates several balances at once.
 * @throws the constraint `member_not_overdrawn` if a balance would fall below zero; the caller's rules prevent that
 */
export async function post(tx: Tx, movement: Movement): Promise<void> {
  const { partnerId, transfers, now } = movement
  if (transfers.length === 0) return
  await keepOnNode(tx, [movement])
  const unused = await addBalances(tx, movement)
  await release(tx, { partnerId, unused, now })
  await cachedSql`with ${postSql([movement])} select`.execute(tx)
}

/** Pay of a pay cycle that a member has not withdrawn. */
export type UnusedPay = { memberId: string; currency: Currency; payCycleId: string; amount: bigint }

/** Returns unused pay of ended cycles to the earned pay of its cycle. The caller has locked the members. */
export async function release(
  tx: Tx,
  { partnerId, unused, now }: { partnerId: string; unused: UnusedPay[]; now: Date },
): Promise<void> {
  if (unused.length === 0) return
  await keepOnNode(tx, [{ partnerId }])
  const movements = [...Map.groupBy(unused, ({ payCycleId }) => payCycleId)].map(([payCycleId, ofCycle]) => ({
    partnerId,
    movementId: payCycleId,
    reason: 'pay_cycle.closed',
    transfers: ofCycle.map(pay => ({ debit: 'member_available' as const, credit: 'earned_pay' as const, ...pay })),
    now,
  }))
  await cachedSql`with ${postSql(movements)} select`.execute(tx)
}

/**
 * Adds the balances that a movement needs and that do not exist yet.
 * @returns the unused pay of other cycles than those whose pay the movement makes available or takes
 */
async function addBalances(tx: Tx, { partnerId, transfers }: Movement): Promise<UnusedPay[]> {
  const column = (name: 'memberId' | 'currency') => transfers.map(transfer => transfer[name] ?? null)
  const cycles = transfers.map(({ debit, credit, payCycleId = null }) =>
    debit === 'member_available' || credit === 'member_available' ? payCycleId : null,
  )
  const { partner, home } = onNodeOf(tx, partnerId)
  const { rows } = await sql<UnusedPay>`
    with concerned as (
      select distinct member_id, currency, pay_cycle_id
        from unnest(${column('memberId')}::text[], ${column('currency')}::text[], ${cycles}::text[])
               as t (member_id, currency, pay_cycle_id)
       where member_id is not null
    ), added as (
      insert into ledger_balances (partner_id, member_id, currency)
      select ${partner}, member_id, currency from concerned ${home} order by member_id, currency
          on conflict do nothing
    )
    select b.member_id, b.currency, b.pay_cycle_id, b.available as amount
      from concerned c
      join ledger_balances b on b.partner_id = ${partnerId} and b.member_id = c.member_id and b.currency = c.currency
     where b.available > 0 and b.pay_cycle_id <> c.pay_cycle_id
     order by b.member_id, b.currency`.execute(tx)
  return rows
}

/**
 * SQL of the `with` steps that book movements, for the statement that makes their other changes. The conditions of `post`
 * apply; in addition the members' balance rows must exist, without unused pay of another cycle.
 *
 * A member's transfers are numbered under the member's lock. Neither request times nor transaction ids are in the order in
 * which the lock was held, and transaction ids do not survive a move to another server.
 */
export function postSql(movements: Movement[]) {
  // Ids ascend, so lines are listed in the order given.
  const rows = movements.flatMap(({ transfers, now, ...movement }) =>
    transfers.map(transfer => ({ ...movement, ...transfer, id: newId('transfer', now), at: now.toISOString() })),
  )
  const column = <K extends keyof (typeof rows)[number]>(name: K) => rows.map(row => row[name] ?? null)
  const { partner, home } = onPartnersNode(movements)
  return cachedSql`
    lines as (
      select * from unnest(
        ${column('partnerId')}::text[], ${column('id')}::text[], ${column('movementId')}::text[], ${column('reason')}::text[],
        ${column('debit')}::text[], ${column('credit')}::text[], ${column('amount')}::bigint[], ${column('currency')}::text[],
        ${column('memberId')}::text[], ${column('payCycleId')}::text[], ${column('at')}::timestamptz[])
        with ordinality as t (partner_id, id, movement_id, reason, debit, credit, amount, currency, member_id, pay_cycle_id, created_at, place)
    ), moved as (
      select partner_id, member_id, currency, ${availableChange} as available, ${owedChange} as owed, count(*) as transfers,
             max(case when 'member_available' in (debit, credit) then pay_cycle_id end) as pay_cycle_id
        from lines t
       where member_id is not null
       group by partner_id, member_id, currency
    ), balanced as (
      update ledger_balances b
         set available = b.available + moved.available, owed = b.owed + moved.owed,
             transfer_count = b.transfer_count + moved.transfers,
             pay_cycle_id = coalesce(moved.pay_cycle_id, b.pay_cycle_id)
        from moved
       where b.partner_id = moved.partner_id and b.member_id = moved.member_id and b.currency = moved.currency
             ${onOnePartner('b', movements)}
      returning b.partner_id, b.member_id, b.currency, b.transfer_count - moved.transfers as counted_before
    ), numbered as (
      -- A sort instead of a join: the row of the balance comes before the member's lines, at place 0.
      select t.*, max(counted_before) over member + row_number() over (member order by place) - 1 as member_sequence
        from (select lines.*, null::bigint as counted_before from lines
               union all
              select partner_id, null, null, null, null, null, null, currency, member_id, null, null, 0, counted_before from balanced) t
      window member as (partition by partner_id, member_id, currency)
    ), posted as (
      insert into ledger_transfers
             (partner_id, id, movement_id, reason, debit, credit, amount, currency, member_id, pay_cycle_id, created_at, member_sequence)
      select ${partner}, id, movement_id, reason, debit, credit, amount, currency, member_id, pay_cycle_id, created_at, member_sequence
        from numbered new ${home} where place > 0
    ), floated as (
      insert into ledger_float_changes (partner_id, currency, id, float_change, pending_change)
      select ${partner}, currency, first_id, float_change, pending_change
        from (select partner_id, currency, min(id) as first_id, ${floatChange} as float_change,
                     ${pendingChange} as pending_change
                from lines t where ${movesFloat} group by partner_id, currency) new ${home}
    ), deductions as (
      select partner_id, pay_cycle_id, member_id, currency, min(id) as id, sum(${deductionChange}) as change
        from lines t where ${changesDeduction} group by partner_id, pay_cycle_id, member_id, currency
    ), deducted as (
      insert into ledger_deductions as d (partner_id, pay_cycle_id, member_id, currency, amount)
      select ${partner}, pay_cycle_id, member_id, currency, change from deductions new ${home} where change <> 0
          on conflict (partner_id, pay_cycle_id, member_id, currency) do update set amount = d.amount + excluded.amount
      returning partner_id, pay_cycle_id, member_id, currency, amount
    ), cycled as (
      insert into ledger_cycle_changes (partner_id, pay_cycle_id, currency, id, available_change, deductions_change)
      select ${partner}, pay_cycle_id, currency, first_id, available, deductions
        from (select partner_id, pay_cycle_id, currency, min(id) as first_id, sum(available) as available, sum(deductions) as deductions
                from (select partner_id, pay_cycle_id, currency, id, ${inCycleAvailable} as available, 0 as deductions
                        from lines t where 'member_available' in (debit, credit)
                       union all
                      -- A deduction was zero before if the change is all of it.
                      select partner_id, pay_cycle_id, currency, id, 0, (amount <> 0)::integer - (amount <> change)::integer
                        from deducted join deductions using (partner_id, pay_cycle_id, member_id, currency)) t
               group by partner_id, pay_cycle_id, currency
              having sum(available) <> 0 or sum(deductions) <> 0) new ${home}
    )`
}

/** The change that a row `t` of `ledger_transfers` makes to what is available in its cycle. */
const inCycleAvailable = sql`(case when t.credit = 'member_available' then t.amount else -t.amount end)`

/**
 * The condition that a row `t` of `ledger_transfers` changes the deduction of its member and cycle: pay that was earned and is no
 * longer available. Closing the cycle changes no deduction, and settling it leaves it as it was.
 */
const changesDeduction = sql`(
  (t.debit in ('earned_pay', 'member_available')) <> (t.credit in ('earned_pay', 'member_available'))
  and not (t.reason = 'pay_cycle.settled' and t.movement_id = t.pay_cycle_id))`

/** The change that such a row makes. */
const deductionChange = sql`(case when t.debit in ('earned_pay', 'member_available') then t.amount else -t.amount end)`

/** The change that rows `t` of `ledger_transfers` make to the available balance (credits less debits) and the debt (debits less credits). */
export const availableChange = changeOf({ plus: 'credit', account: 'member_available' })
export const owedChange = changeOf({ plus: 'debit', account: 'member_owed' })

function changeOf({ plus, account }: { plus: 'debit' | 'credit'; account: Account }) {
  const [added, taken] =
    plus === 'debit' ? [sql.ref('t.debit'), sql.ref('t.credit')] : [sql.ref('t.credit'), sql.ref('t.debit')]
  const name = sql.lit(account)
  return sql`coalesce(sum(case when ${added} = ${name} then t.amount when ${taken} = ${name} then -t.amount else 0 end), 0)::bigint`
}

/** The condition that a row `t` of `ledger_transfers` changes the float or its pending part. */
export const movesFloat = sql`(t.debit in ('float', 'payouts_pending') or t.credit in ('float', 'payouts_pending'))`

/** The change that rows `t` make to the float (debits less credits) and its pending part (credits less debits). */
export const floatChange = changeOf({ plus: 'debit', account: 'float' })
export const pendingChange = changeOf({ plus: 'credit', account: 'payouts_pending' })

type FloatInSql = { partnerId: RawBuilder<unknown>; currency: RawBuilder<unknown>; rows?: { partnerId: string }[] }

/**
 * SQL for one row `(float, pending)`: the balance of a partner's float in a currency, and the part on its way to members. Both
 * are the total plus the changes that are not folded into the total yet: with a single row, every withdrawal of the partner
 * would wait for the one before it.
 * @param of SQL of the partner's id and of the currency
 * @param of.rows the rows of the batch whose statement contains this SQL
 */
export function floatSums({ partnerId, currency, rows = [] }: FloatInSql) {
  return cachedSql<{ float: bigint; pending: bigint }>`
    select (coalesce(total.float_balance, 0) + changes.float)::bigint as float,
           (coalesce(total.pending_balance, 0) + changes.pending)::bigint as pending
      from (select coalesce(sum(unfolded.float_change), 0) as float, coalesce(sum(unfolded.pending_change), 0) as pending
              from ledger_float_changes unfolded
             where unfolded.partner_id = ${partnerId} and unfolded.currency = ${currency}
                   ${onOnePartner('unfolded', rows)}) changes
      left join ledger_float_totals total
             on total.partner_id = ${partnerId} and total.currency = ${currency} ${onOnePartner('total', rows)}`
}

type MemberInCycle = { partnerId: string; memberId: string; currency: Currency; payCycleId: string }

/** A member's available balance in the open pay cycle. The caller has locked the member. */
export async function availableOf(
  tx: Tx,
  { partnerId, memberId, currency, payCycleId }: MemberInCycle,
): Promise<bigint> {
  const { rows } = await sql<{ available: bigint }>`
    select available from ledger_balances
     where partner_id = ${partnerId} and member_id = ${memberId} and currency = ${currency}
       and pay_cycle_id = ${payCycleId}`.execute(tx)
  return rows[0]?.available ?? 0n
}

/** What all members can withdraw in a pay cycle, and the number of its deductions, per currency. */
export async function sumCycle(
  db: Reader,
  { partnerId, payCycleId }: { partnerId: string; payCycleId: string },
): Promise<{ currency: Currency; available: bigint; deductions: number }[]> {
  const { rows } = await sql<{ currency: Currency; available: bigint; deductions: number }>`
    select currency, sum(available)::bigint as available, sum(deductions)::integer as deductions
      from (select currency, available, deductions from ledger_cycle_totals
             where partner_id = ${partnerId} and pay_cycle_id = ${payCycleId}
             union all
            select currency, available_change, deductions_change from ledger_cycle_changes
             where partner_id = ${partnerId} and pay_cycle_id = ${payCycleId}) parts
     group by currency`.execute(db)
  return rows
}

/** Some partners, or all others. */
export type PartnerSet = { only: string[] } | { except: string[] }

/** Sums the floats of many partners in a currency (debits less credits) as of some instants, in the order given. */
export async function sumFloatsAt(
  db: Reader,
  { partners, currency, instants }: { partners: PartnerSet; currency: Currency; instants: Date[] },
): Promise<bigint[]> {
  const among = isAmong(partners)
  const ascending = instants.toSorted((one, other) => one.getTime() - other.getTime())
  const [first] = ascending
  if (first === undefined) return []
  // The changes since an instant are a range of the primary key, because ids ascend with time. Each transfer is read once,
  // regardless of the number of instants.
  const { rows } = await sql<{ sum: bigint }>`
    with floats as (
      select partner_id, sum(amount) as balance
        from (select partner_id, float_balance as amount from ledger_float_totals where currency = ${currency} and ${among}
               union all
              select partner_id, float_change from ledger_float_changes where currency = ${currency} and ${among}) parts
       group by partner_id
    ), since as materialized (
      select changes.place, sum(changes.change) as change
        from floats f
       cross join lateral (
             select width_bucket(t.created_at, ${ascending}::timestamptz[]) as place, ${floatChange} as change
               from ledger_transfers t
              where t.partner_id = f.partner_id and t.currency = ${currency} and t.id >= ${firstId('transfer', first)} and ${movesFloat}
              group by t.partner_id, 1
             ) changes
       group by changes.place
    )
    select ((select coalesce(sum(balance), 0) from floats)
            - (select coalesce(sum(change), 0) from since
                where since.place >= width_bucket(at.instant, ${ascending}::timestamptz[])))::bigint as sum
      from unnest(${instants}::timestamptz[]) with ordinality as at (instant, place)
     order by at.place`.execute(db)
  return rows.map(({ sum }) => sum)
}

type CostsInSql = { partnerId: RawBuilder<unknown>; currency: RawBuilder<unknown> }

/** SQL for the costs that the operator bears in a partner's float and has not covered. Such transfers are few and have an index. */
export function operatorCosts({ partnerId, currency }: CostsInSql) {
  return sql<bigint>`
    (select coalesce(sum(case when t.debit = 'operator_costs' then t.amount else -t.amount end), 0)::bigint
       from ledger_transfers t
      where t.partner_id = ${partnerId} and t.currency = ${currency}
        and (t.debit = 'operator_costs' or t.credit = 'operator_costs'))`
}

/** Sums the costs that the operator bears and has not covered, like `sumFloatsAt` for floats. */
export async function sumOperatorCostsAt(
  db: Reader,
  { partners, currency, instants }: { partners: PartnerSet; currency: Currency; instants: Date[] },
): Promise<bigint[]> {
  const { rows } = await sql<{ sum: bigint }>`
    select coalesce(sum(case when t.debit = 'operator_costs' then t.amount else -t.amount end), 0)::bigint as sum
      from unnest(${instants.map(at => firstId('transfer', at))}::text[]) with ordinality as at (first_id, place)
      left join ledger_transfers t
             on t.currency = ${currency} and ${isAmong(partners)} and t.id < at.first_id
            and (t.debit = 'operator_costs' or t.credit = 'operator_costs')
     group by at.place order by at.place`.execute(db)
  return rows.map(({ sum }) => sum)
}

function isAmong(partners: PartnerSet) {
  return 'only' in partners
    ? sql`partner_id = any(${partners.only}::text[])`
    : sql`partner_id <> all(${partners.except}::text[])`
}

/**
 * Folds the changes of a float into its total, so that a sum reads a short range. Safe to run twice and concurrently: it sees
 * only committed changes, one statement deletes each change and adds it to the total, and the total is locked.
 * @param countMax changes of one partner and currency per statement
 * @returns how many changes were folded
 */
export async function foldFloatChanges(
  tx: Tx,
  { partnerId, currency, countMax }: { partnerId: string; currency: Currency; countMax: number },
): Promise<number> {
  await sql`
    insert into ledger_float_totals (partner_id, currency, float_balance, pending_balance)
    values (${partnerId}, ${currency}, 0, 0) on conflict do nothing`.execute(tx)
  await sql`
    select from ledger_float_totals where partner_id = ${partnerId} and currency = ${currency} for update`.execute(tx)
  const { rows } = await sql<{ count: bigint }>`
    with due as (
      select id from ledger_float_changes
       where partner_id = ${partnerId} and currency = ${currency}
       order by id limit ${countMax}
    ), folded as (
      delete from ledger_float_changes c using due
       where c.partner_id = ${partnerId} and c.currency = ${currency} and c.id = due.id
      returning c.float_change, c.pending_change
    ), summed as (
      select count(*) as count, coalesce(sum(float_change), 0) as float, coalesce(sum(pending_change), 0) as pending from folded
    )
    update ledger_float_totals k
       set float_balance = k.float_balance + summed.float, pending_balance = k.pending_balance + summed.pending
      from summed
     where k.partner_id = ${partnerId} and k.currency = ${currency}
    returning summed.count`.execute(tx)
  return Number(rows[0]?.count ?? 0)
}

/**
 * The floats that have changes to fold, most changes first.
 * @param countMin fewer changes are cheap to sum and are not folded
 */
export async function floatsToFold(
  db: Reader,
  { countMin }: { countMin: number },
): Promise<{ partnerId: string; currency: Currency }[]> {
  const { rows } = await sql<{ partnerId: string; currency: Currency }>`
    select partner_id, currency from ledger_float_changes
     group by partner_id, currency
    having count(*) >= ${countMin}
     order by count(*) desc, partner_id, currency`.execute(db)
  return rows
}

/**
 * Folds changes of a partner's pay cycles into their totals. Safe to run twice and concurrently, as for floats. Skips a partner
 * whose row is locked, by another folding for example.
 * @returns how many changes were folded
 */
export async function foldCycleChanges(
  tx: Tx,
  { partnerId, countMax }: { partnerId: string; countMax: number },
): Promise<number> {
  const { rows: locked } = await sql`
    select from partners where id = ${partnerId} for no key update skip locked`.execute(tx)
  if (locked.length === 0) return 0
  const { rows } = await sql<{ count: number }>`
    with due as (
      select pay_cycle_id, currency, id from ledger_cycle_changes where partner_id = ${partnerId} limit ${countMax}
    ), folded as (
      delete from ledger_cycle_changes c using due
       where c.partner_id = ${partnerId} and c.pay_cycle_id = due.pay_cycle_id and c.currency = due.currency and c.id = due.id
      returning c.pay_cycle_id, c.currency, c.available_change, c.deductions_change
    ), added as (
      insert into ledger_cycle_totals as k (partner_id, pay_cycle_id, currency, available, deductions)
      select ${partnerId}, pay_cycle_id, currency, sum(available_change), sum(deductions_change)
        from folded group by pay_cycle_id, currency order by pay_cycle_id, currency
          on conflict (partner_id, pay_cycle_id, currency) do update
         set available = k.available + excluded.available, deductions = k.deductions + excluded.deductions
    )
    select count(*)::integer as count from folded`.execute(tx)
  return rows[0]?.count ?? 0
}
