import type pg from 'pg'

/** A trigger that works on one PostgreSQL but not on a shard, and what takes its place on a distributed one. */
type ShardTrigger = { name: string; change: string; statement: string }

// A trigger on a shard runs on its node, in the transaction of the shard's row. There it finds the rows of the same partner, but no
// transition table, and writes to a reference table deadlock with the transaction's own.
const shardTriggers: readonly ShardTrigger[] = [
  {
    name: 'withdrawals_begin_unpaid',
    change: 'withdrawals: a trigger per row lists those that are not paid',
    statement: `
      create or replace function public.add_unpaid_withdrawal() returns trigger
        language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
      begin
        insert into public.unpaid_withdrawals (partner_id, withdrawal_id, status, due_at)
        values (new.partner_id, new.id, new.status, new.due_at);
        return null;
      end $$;
      drop trigger withdrawals_begin_unpaid on public.withdrawals;
      create trigger withdrawals_begin_unpaid after insert on public.withdrawals
        for each row execute function public.add_unpaid_withdrawal()`,
  },
]

/** Lists the triggers that still have to be replaced. */
export async function triggersToReplace(client: pg.ClientBase): Promise<ShardTrigger[]> {
  const { rows } = await client.query<{ name: string }>(
    `select tgname as name from pg_trigger where tgrelid in ('public.withdrawals'::regclass, 'public.payouts'::regclass)
        and (tgnewtable is not null or tgname = 'payouts_leave_their_batch')`,
  )
  const unsuitable = new Set(rows.map(({ name }) => name))
  return shardTriggers.filter(({ name }) => unsuitable.has(name))
}
