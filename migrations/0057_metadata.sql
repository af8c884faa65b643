-- Partners attach keys and values to members, intents, pay runs and webhook endpoints. They are not columns of those
-- tables, so that the hot path neither reads nor writes them.

set local lock_timeout = '5s';

create table metadata (
  partner_id id not null references partners,
  kind text not null check (kind in ('member', 'withdrawal_intent', 'pay_run', 'webhook')),
  resource_id id not null,
  key text collate "C" not null constraint keys_of_40_characters check (length(key) between 1 and 40),
  value text collate "C" not null constraint values_of_500_characters check (length(value) between 1 and 500),
  -- In the order in which the partner sent them.
  position integer not null constraint at_most_20_keys check (position between 1 and 20),
  -- Metadata ends with its object, and cannot be of one that does not exist.
  member_id id generated always as (case when kind = 'member' then resource_id end) stored,
  withdrawal_intent_id id generated always as (case when kind = 'withdrawal_intent' then resource_id end) stored,
  pay_run_id id generated always as (case when kind = 'pay_run' then resource_id end) stored,
  webhook_id id generated always as (case when kind = 'webhook' then resource_id end) stored,
  primary key (partner_id, resource_id, key),
  unique (partner_id, resource_id, position),
  foreign key (partner_id, member_id) references members (partner_id, id) on delete cascade,
  foreign key (partner_id, withdrawal_intent_id) references withdrawal_intents (partner_id, id) on delete cascade,
  foreign key (partner_id, pay_run_id) references pay_runs (partner_id, id) on delete cascade,
  foreign key (partner_id, webhook_id) references webhook_endpoints (partner_id, id) on delete cascade
);
-- A filtered list is a range of it, in the order of the ids.
create index metadata_by_value on metadata (partner_id, kind, key, value, resource_id);
-- For deleting an object.
create index metadata_of_members on metadata (partner_id, member_id) where member_id is not null;
create index metadata_of_intents on metadata (partner_id, withdrawal_intent_id) where withdrawal_intent_id is not null;
create index metadata_of_pay_runs on metadata (partner_id, pay_run_id) where pay_run_id is not null;
create index metadata_of_webhooks on metadata (partner_id, webhook_id) where webhook_id is not null;

alter table partners add column metadata_in_events boolean not null default false;

-- What the event's object had when the event got its place in the feed, if the partner wants it in events. The trigger on events lets
-- it be set with the position only.
alter table events add column metadata jsonb;

-- `metadata` is kept, because that of webhook endpoints is; the rest is deleted with its objects.
create or replace function reset_sandbox_partner(partner text) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  kept constant text[] := array['api_keys', 'tiers', 'tier_versions', 'sandbox_clocks', 'audit_log', 'event_feeds',
                                'idempotency_keys', 'webhook_endpoints', 'webhook_secrets', 'webhook_feeds', 'request_log',
                                'user_roles', 'user_invitations', 'metadata'];
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
