-- Operators hold other people's wages and must be able to show who changed what. Each change to configuration or to people has
-- one row here, written in the transaction of the change. And a movement of a float that carries a reference is noted once,
-- however often the command is repeated.

set local lock_timeout = '5s';

create table audit_log (
  partner_id id not null references partners,
  id id not null,
  at timestamptz not null,
  actor_kind text not null check (actor_kind in ('api_key', 'cli', 'worker')),
  -- The key's id, or user@host of a command.
  actor text not null check (length(actor) between 1 and 200),
  -- What was done to what: 'tier.set'.
  action text collate "C" not null check (action ~ '^[a-z_]+\.[a-z_]+$' and length(action) <= 60),
  resource_kind text collate "C" not null generated always as (split_part(action, '.', 1)) stored,
  resource_id text collate "C" not null check (length(resource_id) between 1 and 200),
  -- The rows are kept for ever, so they hold nothing that a person may ask to have erased: ids, states, settings and amounts,
  -- never names, e-mails, phone numbers, whole account numbers or secrets.
  details jsonb not null,
  -- Where the request or the operator came from, and the id of the request, where they are known.
  address text check (length(address) <= 100),
  request_id text check (length(request_id) <= 200),
  primary key (partner_id, id),
  -- The largest is a handful of settings; a list of members is one row with its numbers.
  constraint details_are_small check (octet_length(details::text) <= 65536)
);
create index audit_log_newest on audit_log (id);
create index audit_log_of_resource on audit_log (partner_id, resource_id, id);
create trigger audit_log_append_only before update or delete on audit_log
  for each row execute function refuse_change();
create trigger audit_log_not_emptied before truncate on audit_log
  for each statement execute function refuse_change();

-- What was moved under a reference, in the transaction that books it.
create table float_references (
  partner_id id not null references partners,
  reference text collate "C" not null check (length(reference) between 1 and 140),
  direction text not null check (direction in ('fund', 'withdraw')),
  currency currency not null,
  amount bigint not null check (amount > 0),
  -- Its transfers in the books.
  movement_id id not null,
  created_at timestamptz not null,
  constraint one_movement_per_reference primary key (partner_id, reference)
);
create trigger float_references_append_only before update or delete on float_references
  for each row execute function refuse_change();
create trigger float_references_not_emptied before truncate on float_references
  for each statement execute function refuse_change();
