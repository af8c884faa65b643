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
