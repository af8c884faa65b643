-- Operators use an API too, with keys that belong to no partner. The overview of a programme is kept by day and by pay cycle,
-- because summing a million withdrawals per request would be slow. The books are verified in the background.
-- compatible-with: 0026

set local lock_timeout = '5s';

create table operator_keys (
  id id primary key,
  -- What the key is for, chosen by the operator: 'nightly reports'.
  name text not null check (length(name) between 1 and 100),
  -- SHA-256 of the whole key. The key itself is shown once and stored nowhere.
  hash bytea not null check (length(hash) = 32),
  hint text not null,
  -- The operator who created it, and the operator who revoked it.
  created_by text not null check (length(created_by) between 1 and 200),
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_by text check (length(revoked_by) between 1 and 200),
  revoked_at timestamptz,
  last_used_at timestamptz,
  constraint one_hash_one_operator_key unique (hash),
  constraint a_revocation_names_its_operator check ((revoked_at is null) = (revoked_by is null))
);
create trigger operator_keys_never_revived before update on operator_keys
  for each row when (
    (old.id, old.name, old.hash, old.hint, old.created_by, old.created_at)
    is distinct from (new.id, new.name, new.hash, new.hint, new.created_by, new.created_at)
    or (old.revoked_at is not null and (new.revoked_at, new.revoked_by) is distinct from (old.revoked_at, old.revoked_by))
    or coalesce(new.expires_at, 'infinity') > coalesce(old.expires_at, 'infinity'))
  execute function refuse_key_revival();

alter table audit_log
  drop constraint audit_log_actor_kind_check,
  add constraint audit_log_actor_kind_check check (actor_kind in ('api_key', 'cli', 'worker', 'user', 'operator_key'));

alter table installation_audit_log
  drop constraint installation_audit_log_actor_kind_check,
  add constraint installation_audit_log_actor_kind_check check (actor_kind in ('cli', 'worker', 'user', 'operator_key'));

-- What a partner's members have withdrawn, per calendar day and per pay cycle: added up from the event feed, in its order.
-- How far is kept beside the sums, in the same transaction. A reset that runs at the same time cannot leave sums without it.
create table withdrawal_total_feeds (
  partner_id id primary key references partners,
  -- Of the last event that is in the sums.
  position bigint not null check (position >= 0)
);
create table withdrawal_totals (
  partner_id id not null references withdrawal_total_feeds,
  currency currency not null,
  kind text not null check (kind in ('day', 'cycle')),
  -- The day in the partner's time zone, '2026-03-31', or the id of the pay cycle.
  period text collate "C" not null,
  withdrawals bigint not null,
  amount bigint not null,
  -- What members paid, as part of the amounts, and what the employer paid.
  fees bigint not null,
  employer_fees bigint not null,
  -- Withdrawals that were cancelled, failed or were returned, and their gross amounts.
  given_back bigint not null,
  given_back_amount bigint not null,
  primary key (partner_id, currency, kind, period)
);

-- The audit log of all partners is searched by who and by what.
create index audit_log_of_actor on audit_log (actor, id);
create index audit_log_of_action on audit_log (action, id);

-- The books, recomputed in the background. One at a time: each reads the whole ledger.
create table ledger_verifications (
  id id primary key,
  -- The operator, or user@host of a command.
  requested_by text not null check (length(requested_by) between 1 and 200),
  requested_at timestamptz not null,
  started_at timestamptz,
  ended_at timestamptz,
  checks_done integer not null default 0 check (checks_done >= 0),
  checks_total integer not null check (checks_total > 0),
  -- The checks with the first row that breaks each; null until it has ended, and if it could not end.
  checks jsonb,
  -- Why it could not end.
  problem text,
  constraint ended_with_checks_or_a_problem check ((ended_at is null) = (checks is null and problem is null))
);
create unique index one_verification_at_a_time on ledger_verifications ((true)) where ended_at is null;

-- A person searches members by the beginning of a name. Bytewise, so that a prefix is a range whatever the database's locale.
create index members_by_full_name on members (partner_id, (lower(first_name || ' ' || last_name) collate "C"));
create index members_by_last_name on members (partner_id, (lower(last_name) collate "C"));
