import type pg from 'pg'

/** One change that spreads the tables, and the statement that makes it. */
export type DistributionStep = { change: string; statement: string }

/** A trigger or function that works on one PostgreSQL but not on nodes, and the form that it has there. */
type NodeForm = DistributionStep & { name: string }

// A trigger on a shard runs on its node, in the transaction of the shard's row. There it finds the rows of the same partner, but no
// transition table, and writes to a reference table deadlock with the transaction's own.
const forms: readonly NodeForm[] = [
  {
    name: 'add_unpaid_withdrawal',
    change: 'withdrawals: a function for one row lists those that are not paid',
    statement: `
      create or replace function public.add_unpaid_withdrawal() returns trigger
        language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
      begin
        insert into public.unpaid_withdrawals (partner_id, withdrawal_id, status, due_at)
        values (new.partner_id, new.id, new.status, new.due_at);
        return null;
      end $$`,
  },
  {
    name: 'withdrawals_begin_unpaid',
    change: 'withdrawals: a trigger per row lists those that are not paid',
    statement: `
      create or replace trigger withdrawals_begin_unpaid after insert on public.withdrawals
        for each row execute function public.add_unpaid_withdrawal()`,
  },
  {
    name: 'amounts_of_ours',
    change: 'amounts_of_ours: reads the payments of all nodes',
    statement: `
      create or replace function public.amounts_of_ours(of_currency text, among bigint[]) returns setof bigint
        language plpgsql stable as $$
      declare
        batches text[];
      begin
        return query select distinct p.net_amount from public.payouts p
          where p.currency = of_currency and p.net_amount = any(among) and p.outcome is distinct from 'paid';
        select array_agg(b.id) into batches from public.payout_batches b
         where b.currency = of_currency and b.status = 'settled' and b.control_total = any(among);
        return query select b.control_total from public.payout_batches b
          where b.currency = of_currency and b.control_total = any(among) and b.status <> 'cancelled'
            and (b.status <> 'settled' or b.given_back_at is not null);
        return query select b.control_total
           from (select distinct p.batch_id from public.payouts p
                  where p.batch_id = any(batches) and p.outcome in ('failed', 'returned')) p
           join public.payout_batches b on b.id = p.batch_id;
        select array_agg(b.id) into batches from public.payout_batches b
         where b.currency = of_currency and b.status in ('building', 'approved', 'sent', 'acknowledged');
        return query select amount
           from (select p.batch_id, sum(p.net_amount)::bigint as failed from public.payouts p
                  where p.batch_id = any(batches) and p.outcome = 'failed' and p.removed_at is null group by p.batch_id) p
           join public.payout_batches b on b.id = p.batch_id, unnest(array[p.failed, b.control_total - p.failed]) as amount
          where amount = any(among);
        return query select b.control_total from public.payout_batches b where b.id = any(batches) and b.control_total = any(among);
        return query select distinct abs(d.amount) from public.settlement_dues d
          where d.currency = of_currency and abs(d.amount) = any(among);
        return query select distinct abs(d.amount - d.received) from public.settlement_dues d
          where d.currency = of_currency and abs(d.amount - d.received) = any(among);
      end $$`,
  },
  {
    name: 'holds_reference_of_ours',
    change: 'holds_reference_of_ours: reads the pay cycles of all nodes',
    statement: `
      create or replace function public.holds_reference_of_ours(words text) returns boolean language plpgsql stable as $$
      declare
        plain text := regexp_replace(upper(words), '[^A-Z0-9]', '', 'g');
        starts integer[] := array(select at from generate_series(1, length(plain) - 15) as at where substr(plain, at, 2) = 'MM');
        payments text[] := array(select substr(plain, at, 16) from unnest(starts) as at);
        batches text[] := array(select substr(plain, at, 17) from unnest(starts) as at);
        cycles text[] := array(select substr(plain, at + 3, 14) from unnest(starts) as at where substr(plain, at, 3) = 'MMS');
      begin
        return exists (select from public.payout_references where reference = any(payments))
            or exists (select from public.payout_batches where message_id = any(batches))
            or (cardinality(cycles) > 0
                and exists (select from public.pay_cycles where upper(right(id, 14)) = any(cycles)));
      end $$`,
  },
]

/** Lists the triggers and functions that still have to be made or replaced. */
export async function formsToReplace(client: pg.ClientBase): Promise<NodeForm[]> {
  const { rows } = await client.query<{ name: string }>(
    `select tgname as name from pg_trigger where tgrelid = 'public.withdrawals'::regclass and tgnewtable is not null
      union all
     select 'add_unpaid_withdrawal' where to_regprocedure('public.add_unpaid_withdrawal()') is null
      union all
     select proname from pg_proc p join pg_language l on l.oid = p.prolang
      where p.pronamespace = 'public'::regnamespace and l.lanname = 'sql'`,
  )
  const unsuitable = new Set(rows.map(({ name }) => name))
  return forms.filter(({ name }) => unsuitable.has(name))
}
