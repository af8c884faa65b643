-- On a sandbox each partner has a clock that can be moved forward, and can instruct the simulated bank. A partner can be
-- reset, which deletes its rows; a live database refuses that.

set local lock_timeout = '5s';

-- How far a partner's clock is ahead of real time. A partner that never moved its clock has no row.
create table sandbox_clocks (
  partner_id id primary key references partners,
  offset_ms bigint not null,
  constraint clock_is_at_most_400_days_ahead check (offset_ms between 0 and 34560000000)
);

-- A move of a clock. It takes as long as the work that falls due on the way, so it is a row that any process can go on with.
create table sandbox_clock_moves (
  partner_id id not null references partners,
  id id not null,
  -- The request that started it, so that a retry with the same key waits for this move instead of starting another one.
  idempotency_key text collate "C",
  starts_at timestamptz not null,
  target timestamptz not null,
  -- What fell due on the way, oldest first.
  ran jsonb not null default '[]',
  -- The process that is moving the clock, and until when no other one takes over.
  leased_by text,
  leased_until timestamptz,
  ended_at timestamptz,
  primary key (partner_id, id),
  constraint clock_moves_forward check (target >= starts_at)
);
create unique index one_clock_move_at_a_time on sandbox_clock_moves (partner_id) where ended_at is null;
create index sandbox_clock_moves_by_key on sandbox_clock_moves (partner_id, idempotency_key) where idempotency_key is not null;

-- The simulated bank reports to each partner by that partner's clock.
alter table simulated_bank_payments add column partner_id id;
alter table simulated_bank_reports add column partner_id id;
update simulated_bank_payments p set partner_id = w.partner_id from withdrawals w where w.id = p.reference;
update simulated_bank_reports r set partner_id = w.partner_id from withdrawals w where w.id = r.reference;
create index simulated_bank_reports_by_partner on simulated_bank_reports (partner_id, reported_at, sequence);

-- How the simulated bank treats one payment, whatever its account says.
create table simulated_bank_instructions (
  partner_id id not null references partners,
  reference text collate "C" not null,
  outcome text not null check (outcome in ('hold', 'paid', 'failed', 'returned')),
  reason text,
  primary key (partner_id, reference)
);

-- How the simulated bank treats a partner's next payments, in order.
create table simulated_bank_faults (
  partner_id id not null references partners,
  sequence bigint generated always as identity,
  fault text not null check (fault in ('timeout', 'error', 'duplicate', 'late', 'contradiction', 'unknown_reference')),
  remaining integer not null check (remaining between 0 and 1000),
  primary key (partner_id, sequence)
);

-- Rows that are kept forever can be deleted by a reset only: by the function below, which the owner of the tables made, and
-- which works on a sandbox only. A setting alone would not do: every role can make one.
create or replace function refuse_change() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and old.partner_id = current_setting('midmonth.resetting', true)
     and current_user = (select pg_catalog.pg_get_userbyid(relowner) from pg_catalog.pg_class where oid = tg_relid)
     and exists (select from public.installation where mode = 'sandbox')
  then
    return old;
  end if;
  raise exception '% is append-only', tg_argv[0]
    using errcode = 'check_violation', constraint = 'append_only', table = tg_argv[0];
end $$;

-- Deletes what a partner of a sandbox has: every row of every table with a partner_id, except the partner's keys, tiers,
-- clock, webhook endpoints, audit and request log, and places in the feed. Only an owner may delete from tables that are append-only for the program.
create function reset_sandbox_partner(partner text) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  kept constant text[] := array['api_keys', 'tiers', 'tier_versions', 'sandbox_clocks', 'audit_log', 'event_feeds',
                                'idempotency_keys', 'webhook_endpoints', 'webhook_secrets', 'webhook_feeds', 'request_log'];
  remaining text[];
  next_table text;
begin
  if not exists (select from public.installation where mode = 'sandbox') then
    raise exception 'only a partner of a sandbox can be reset' using errcode = 'insufficient_privilege';
  end if;
  perform set_config('midmonth.resetting', partner, true);
  select array_agg(c.relname::text) into remaining
    from pg_attribute a join pg_class c on c.oid = a.attrelid
   where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
     and a.attname = 'partner_id' and not a.attisdropped and c.relname <> all(kept);
  while cardinality(remaining) > 0 loop
    -- One that no other of them refers to.
    select t.name into next_table from unnest(remaining) as t (name)
     where not exists (
       select from pg_constraint k
        where k.contype = 'f' and k.confrelid = format('public.%I', t.name)::regclass and k.conrelid <> k.confrelid
          and k.conrelid in (select format('public.%I', other.name)::regclass from unnest(remaining) as other (name)))
     limit 1;
    if next_table is null then
      raise exception 'the tables % refer to each other in a circle', remaining;
    end if;
    execute format('delete from public.%I where partner_id = $1', next_table) using partner;
    remaining := array_remove(remaining, next_table);
  end loop;
  -- The record of the request that resets is completed after this.
  delete from public.idempotency_keys where partner_id = partner and status is not null;
  perform set_config('midmonth.resetting', '', true);
end $$;
revoke execute on function reset_sandbox_partner(text) from public;
