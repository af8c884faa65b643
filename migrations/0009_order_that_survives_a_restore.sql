-- Nothing is ordered by transaction ids any more. They start again on another server, where a restored dump then sorted new
-- events before old ones, and on a distributed PostgreSQL one transaction has several.
--
-- The feed of a partner is numbered after commit, under a lock of the partner's own. A member's transfers are numbered under
-- the member's lock. The float is a total and the changes that are not folded into it yet.

set local lock_timeout = '5s';

drop trigger events_append_only on events;
alter table events
  -- The place in the partner's feed, given once, after the commit of the event; null until then.
  add column position bigint check (position > 0);

with placed as (
  select partner_id, id, row_number() over (partition by partner_id order by transaction_id, sequence, id) as position
    from events
)
update events e set position = placed.position from placed where placed.partner_id = e.partner_id and placed.id = e.id;

drop index events_feed;
drop index events_feed_of_type;
create unique index events_feed on events (partner_id, position) where position is not null;
create index events_feed_of_type on events (partner_id, type, position) where position is not null;
create index events_without_position on events (partner_id, id) where position is null;
alter table events drop column transaction_id;

-- How far the feed of a partner is numbered. The row is the lock under which positions are given.
create table event_feeds (
  partner_id id primary key references partners,
  last_position bigint not null check (last_position >= 0)
);
insert into event_feeds (partner_id, last_position)
select partner_id, max(position) from events group by partner_id;

-- An event changes once: it gets its position.
create trigger events_append_only before update on events
  for each row when (
    old.position is not null or new.position is null
    or (old.partner_id, old.id, old.type, old.resource_id, old.sequence, old.data, old.created_at)
       is distinct from (new.partner_id, new.id, new.type, new.resource_id, new.sequence, new.data, new.created_at)
  )
  execute function refuse_change();

-- A member's transfers in a currency are numbered from 1 in the order in which the member's lock was held.
alter table ledger_balances add column transfer_count bigint not null default 0;
alter table ledger_transfers disable trigger ledger_transfers_append_only;
alter table ledger_transfers add column member_sequence bigint check (member_sequence > 0);
with numbered as (
  select partner_id, id,
         row_number() over (partition by partner_id, member_id, currency order by transaction_id, created_at, id) as place
    from ledger_transfers where member_id is not null
)
update ledger_transfers t set member_sequence = numbered.place
  from numbered where numbered.partner_id = t.partner_id and numbered.id = t.id;
alter table ledger_transfers enable trigger ledger_transfers_append_only;
update ledger_balances b set transfer_count = counted.transfers
  from (select partner_id, member_id, currency, count(*) as transfers
          from ledger_transfers where member_id is not null group by partner_id, member_id, currency) counted
 where counted.partner_id = b.partner_id and counted.member_id = b.member_id and counted.currency = b.currency;
alter table ledger_transfers
  add constraint members_transfers_are_numbered check ((member_id is null) = (member_sequence is null));
drop index ledger_transfers_of_member;
create unique index one_transfer_per_member_sequence
  on ledger_transfers (partner_id, member_id, currency, member_sequence) where member_id is not null;

-- What the float holds and what of it is pending: the totals, and the changes since they were last folded into them. A change
-- is a row of its own, so that withdrawals of one partner do not wait for each other.
create table ledger_float_totals (
  partner_id id not null references partners,
  currency currency not null,
  -- Debits less credits of the account `float`.
  float_balance bigint not null,
  -- Credits less debits of the account `payouts_pending`.
  pending_balance bigint not null,
  primary key (partner_id, currency)
);
create table ledger_float_changes (
  partner_id id not null,
  currency currency not null,
  -- That of the first transfer that it sums up.
  id id not null,
  float_change bigint not null,
  pending_change bigint not null,
  primary key (partner_id, currency, id)
);
insert into ledger_float_totals (partner_id, currency, float_balance, pending_balance)
select partner_id, currency,
       sum(case when debit = 'float' then amount when credit = 'float' then -amount else 0 end),
       sum(case when credit = 'payouts_pending' then amount when debit = 'payouts_pending' then -amount else 0 end)
  from ledger_transfers
 where debit in ('float', 'payouts_pending') or credit in ('float', 'payouts_pending')
 group by partner_id, currency;
drop table ledger_snapshots;
drop index ledger_transfers_of_float;
alter table ledger_transfers drop column transaction_id;

-- Triggers are told their entity: on a distributed PostgreSQL the name of a table is the name of a shard.
create or replace function refuse_unlisted_edge() returns trigger language plpgsql as $$
declare
  was text := case tg_op when 'INSERT' then 'new' else old.status end;
begin
  if not exists (
    select from public.state_edges where entity = tg_argv[0] and from_state = was and to_state = new.status
  ) then
    raise exception '% may not go from % to %', tg_argv[0], was, new.status
      using errcode = 'check_violation', constraint = 'only_listed_edges', table = tg_argv[0];
  end if;
  return new;
end $$;
create or replace function refuse_other_terms() returns trigger language plpgsql as $$
begin
  raise exception '% keeps the terms that it was made with', tg_argv[0]
    using errcode = 'check_violation', constraint = 'terms_never_change', table = tg_argv[0];
end $$;
create or replace function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_argv[0]
    using errcode = 'check_violation', constraint = 'append_only', table = tg_argv[0];
end $$;
do $$
declare
  t record;
begin
  for t in
    select tgname, tgrelid::regclass::text as entity, pg_get_triggerdef(oid) as definition
      from pg_trigger
     where tgfoid in ('refuse_unlisted_edge'::regproc, 'refuse_other_terms'::regproc, 'refuse_change'::regproc)
       and not tgisinternal and tgnargs = 0
  loop
    execute format('drop trigger %I on %s', t.tgname, t.entity);
    execute regexp_replace(t.definition, '\(\)$', format('(%L)', t.entity));
  end loop;
end $$;
