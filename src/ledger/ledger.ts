import type { RawBuilder } from 'kysely'
import { sql, type Tx } from '../db.ts'
import { fixedSql } from '../fixed-sql.ts'
import { newId } from '../ids.ts'
import type { Currency } from '../money.ts'

/**
 * The accounts of the books (docs/ledger.md). `earned_pay` is one per pay cycle and member; `member_available`,
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
 * Transfers that belong together.
 * `movementId`: what they are about: a pay run, a withdrawal.
 * `reason`: why, in the words of docs/ledger.md: 'withdrawal.held'.
 */
export type Movement = { partnerId: string; movementId: string; reason: string; transfers: Transfer[]; now: Date }

/**
 * Books a movement, and moves the members' balances with it. `ledger_*` is written here only.
 *
 * The caller has locked the members concerned, in id order: balances of several members are changed at once here.
 * @throws the constraint `member_not_overdrawn` when a balance would fall below zero; the caller's rules come first
 */
export async function post(tx: Tx, movement: Movement): Promise<void> {
  const { partnerId, transfers } = movement
  if (transfers.length === 0) return
  const column = (name: 'memberId' | 'currency') => transfers.map(transfer => transfer[name] ?? null)
  await sql`
    insert into ledger_balances (partner_id, member_id, currency)
    select distinct ${partnerId}, member_id, currency
      from unnest(${column('memberId')}::text[], ${column('currency')}::text[]) as t (member_id, currency)
     where member_id is not null
     order by 2, 3
        on conflict do nothing`.execute(tx)
  await fixedSql`with ${posting([movement])} select`.execute(tx)
}

/**
 * SQL of the steps of a `with` that book movements, for the statement that has their other effects. What `post` asks and
 * throws holds here too; beyond it, the members concerned must have their balances already.
 */
export function posting(movements: Movement[]) {
  // The order of their ids tells a statement in which order the lines were meant.
  const rows = movements.flatMap(({ transfers, now, ...movement }) =>
    transfers.map(transfer => ({ ...movement, ...transfer, id: newId('transfer', now), at: now.toISOString() })),
  )
  const column = <K extends keyof (typeof rows)[number]>(name: K) => rows.map(row => row[name] ?? null)
  return fixedSql`
    posted as (
      insert into ledger_transfers
             (partner_id, id, movement_id, reason, debit, credit, amount, currency, member_id, pay_cycle_id, created_at)
      select * from unnest(
        ${column('partnerId')}::text[], ${column('id')}::text[], ${column('movementId')}::text[], ${column('reason')}::text[],
        ${column('debit')}::text[], ${column('credit')}::text[], ${column('amount')}::bigint[], ${column('currency')}::text[],
        ${column('memberId')}::text[], ${column('payCycleId')}::text[], ${column('at')}::timestamptz[])
      returning partner_id, member_id, currency, debit, credit, amount
    ), moved as (
      select partner_id, member_id, currency, ${availableChange} as available, ${owedChange} as owed
        from posted t
       where member_id is not null
       group by partner_id, member_id, currency
    ), balanced as (
      update ledger_balances b
         set available = b.available + moved.available, owed = b.owed + moved.owed
        from moved
       where b.partner_id = moved.partner_id and b.member_id = moved.member_id and b.currency = moved.currency
    )`
}

/** What rows `t` of `ledger_transfers` add to what members have available (credits less debits) and owe (debits less credits). */
export const availableChange = changeOf({ plus: 'credit', account: 'member_available' })
export const owedChange = changeOf({ plus: 'debit', account: 'member_owed' })

function changeOf({ plus, account }: { plus: 'debit' | 'credit'; account: Account }) {
  const [added, taken] =
    plus === 'debit' ? [sql.ref('t.debit'), sql.ref('t.credit')] : [sql.ref('t.credit'), sql.ref('t.debit')]
  const name = sql.lit(account)
  return sql`coalesce(sum(case when ${added} = ${name} then t.amount when ${taken} = ${name} then -t.amount else 0 end), 0)::bigint`
}

/**
 * The condition that a row of `ledger_transfers` (here `t`) moves the float or what is pending; word for word that of the
 * index `ledger_transfers_of_float`.
 */
export const movesFloat = sql`(t.debit in ('float', 'payouts_pending') or t.credit in ('float', 'payouts_pending'))`

/** What rows `t` add to the float (debits less credits) and to what is pending (credits less debits). */
export const floatChange = changeOf({ plus: 'debit', account: 'float' })
export const pendingChange = changeOf({ plus: 'credit', account: 'payouts_pending' })

/**
 * SQL for one row `(float, pending)`: what a partner's float holds in a currency, and what of it is on its way to members.
 * No row is kept for them, since every withdrawal would wait for it: the sum is the latest snapshot and the rows of all
 * transactions since, a short range of `ledger_transfers_of_float`.
 * @param of SQL of the partner's id and of the currency
 */
export function floatSums({ partnerId, currency }: { partnerId: RawBuilder<unknown>; currency: RawBuilder<unknown> }) {
  const snapshot = (column: 'before_transaction' | 'float_balance' | 'pending_balance') => sql`(
    select s.${sql.ref(column)} from ledger_snapshots s where s.partner_id = ${partnerId} and s.currency = ${currency})`
  return sql<{ float: bigint; pending: bigint }>`
    select coalesce(${snapshot('float_balance')}, 0) + ${floatChange} as float,
           coalesce(${snapshot('pending_balance')}, 0) + ${pendingChange} as pending
      from ledger_transfers t
     where t.partner_id = ${partnerId} and t.currency = ${currency}
       and t.transaction_id >= coalesce(${snapshot('before_transaction')}, '0'::xid8)
       and ${movesFloat}`
}
