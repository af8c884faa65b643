import { sql, type Tx } from '../db.ts'
import { newId } from '../ids.ts'
import type { Currency } from '../money.ts'

/**
 * The accounts of the books (docs/ledger.md). `earned_pay` is one per pay cycle, `member_available` and `member_owed` are
 * one per member; the others are one per partner. All of them are per currency.
 */
type Account = 'earned_pay' | 'member_available' | 'member_owed' | 'payouts_pending' | 'float' | 'fees' | 'partner_fees'

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
 * Books transfers that belong together, and moves the members' balances with them. The only writer of `ledger_*`.
 *
 * The caller has locked the members concerned, in id order: balances of several members are changed at once here.
 * @param movementId what the transfers are about: a pay run, a withdrawal
 * @param reason why, in the words of docs/ledger.md: 'withdrawal.completed'
 * @throws the constraint `member_not_overdrawn` when a balance would fall below zero; the caller's rules come first
 */
export async function post(
  tx: Tx,
  {
    partnerId,
    movementId,
    reason,
    transfers,
    now,
  }: { partnerId: string; movementId: string; reason: string; transfers: Transfer[]; now: Date },
): Promise<void> {
  if (transfers.length === 0) return
  const ids = transfers.map(() => newId('transfer', now))
  const column = <K extends keyof Transfer>(name: K) => transfers.map(transfer => transfer[name] ?? null)
  await sql`
    insert into ledger_balances (partner_id, member_id, currency)
    select distinct ${partnerId}, member_id, currency
      from unnest(${column('memberId')}::text[], ${column('currency')}::text[]) as t (member_id, currency)
     where member_id is not null
     order by 2, 3
        on conflict do nothing`.execute(tx)
  await sql`
    with posted as (
      insert into ledger_transfers
             (partner_id, id, movement_id, reason, debit, credit, amount, currency, member_id, pay_cycle_id, created_at)
      select ${partnerId}, id, ${movementId}, ${reason}, debit, credit, amount, currency, member_id, pay_cycle_id, ${now}
        from unnest(${ids}::text[], ${column('debit')}::text[], ${column('credit')}::text[], ${column('amount')}::bigint[],
                    ${column('currency')}::text[], ${column('memberId')}::text[], ${column('payCycleId')}::text[])
          as t (id, debit, credit, amount, currency, member_id, pay_cycle_id)
      returning member_id, currency, debit, credit, amount
    ), moved as (
      select member_id, currency,
             sum(case when credit = 'member_available' then amount when debit = 'member_available' then -amount else 0 end) as available,
             sum(case when debit = 'member_owed' then amount when credit = 'member_owed' then -amount else 0 end) as owed
        from posted
       where member_id is not null
       group by member_id, currency
    )
    update ledger_balances b
       set available = b.available + moved.available, owed = b.owed + moved.owed
      from moved
     where b.partner_id = ${partnerId} and b.member_id = moved.member_id and b.currency = moved.currency`.execute(tx)
}
