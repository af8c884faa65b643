-- People sign in to the console: users with their roles, sessions, invitations and one-time links. What they do is in the audit
-- log, with their id; what concerns no partner, such as a sign-in, is in the audit log of the installation.
-- compatible-with: 0026

set local lock_timeout = '5s';

create table users (
  id id primary key,
  -- What a person signs in with, in lower case.
  email text collate "C" not null constraint one_user_per_email unique
    check (length(email) between 3 and 254 and email = lower(email)),
  name text not null check (length(name) between 1 and 200),
  -- May do everything, for every partner.
  is_operator boolean not null,
  -- Argon2id with its parameters and salt, as a PHC string; null if the user has no password.
  password_hash text collate "C" check (password_hash like '$argon2id$%' and length(password_hash) <= 255),
  -- The secret of the second factor, encrypted if the installation has a key for it; null without a second factor.
  totp_secret bytea,
  -- Null until the first code has proved that the user's device has the secret.
  totp_confirmed_at timestamptz,
  -- The time step of the last code that was accepted: a code counts once.
  totp_last_step bigint,
  created_at timestamptz not null,
  disabled_at timestamptz,
  constraint second_factor_has_a_secret check (totp_confirmed_at is null or totp_secret is not null)
);

create table user_roles (
  partner_id id not null references partners,
  user_id id not null references users,
  role text not null check (role in ('admin', 'payroll', 'support', 'developer', 'viewer')),
  primary key (partner_id, user_id, role)
);
create index user_roles_of_user on user_roles (user_id);

create table user_sessions (
  id id primary key,
  user_id id not null references users,
  -- SHA-256 of the token in the cookie.
  hash bytea not null constraint one_token_one_user_session unique check (length(hash) = 32),
  method text not null check (method in ('link', 'password', 'oidc')),
  address text check (length(address) <= 100),
  user_agent text check (length(user_agent) <= 200),
  created_at timestamptz not null,
  -- To the minute.
  last_used_at timestamptz not null,
  expires_at timestamptz not null,
  constraint user_sessions_are_short check (expires_at > created_at and expires_at <= created_at + interval '12 hours')
);
create index user_sessions_of_user on user_sessions (user_id, id);
create index user_sessions_expired on user_sessions (expires_at);

-- One-time links. A link signs in the user, or lets the user choose a password, or makes the first operator.
create table user_links (
  -- SHA-256 of the token in the link.
  hash bytea primary key check (length(hash) = 32),
  purpose text not null check (purpose in ('sign_in', 'password', 'set_up')),
  user_id id references users,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint set_up_is_for_no_user check ((purpose = 'set_up') = (user_id is null)),
  constraint user_links_are_short check (expires_at > created_at and expires_at <= created_at + interval '7 days')
);
create index user_links_expired on user_links (expires_at);
create index user_links_of_user on user_links (user_id) where user_id is not null;

-- An invitation is for operators, or for roles with one partner.
create table user_invitations (
  id id primary key,
  hash bytea not null constraint one_token_one_invitation unique check (length(hash) = 32),
  email text collate "C" not null check (length(email) between 3 and 254 and email = lower(email)),
  partner_id id references partners,
  roles text[] not null,
  -- The user, or user@host of a command.
  invited_by text not null check (length(invited_by) between 1 and 200),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  constraint invited_as_operator_or_with_roles check (
    (partner_id is null) = (cardinality(roles) = 0) and roles <@ '{admin,payroll,support,developer,viewer}'::text[]),
  constraint invitations_are_short check (expires_at > created_at and expires_at <= created_at + interval '7 days')
);
create index user_invitations_expired on user_invitations (expires_at);
create index user_invitations_of_partner on user_invitations (partner_id, id);

-- The account of a user at the OpenID provider.
create table user_identities (
  issuer text collate "C" not null check (length(issuer) <= 255),
  subject text collate "C" not null check (length(subject) between 1 and 255),
  user_id id not null references users,
  primary key (issuer, subject)
);
create index user_identities_of_user on user_identities (user_id);

-- SHA-256 of the codes that replace a lost second factor. A row is deleted when its code is used.
create table user_recovery_codes (
  user_id id not null references users,
  hash bytea not null check (length(hash) = 32),
  primary key (user_id, hash)
);

-- Browsers in which a user has signed in. Failed attempts elsewhere do not slow a sign-in there down.
create table user_browsers (
  -- SHA-256 of the token in the browser's cookie.
  hash bytea primary key check (length(hash) = 32),
  user_id id not null references users,
  last_used_at timestamptz not null
);
create index user_browsers_of_user on user_browsers (user_id, last_used_at);

-- Failed sign-ins, counted by network, by account and network, by account, and by account and browser.
create table sign_in_failures (
  -- SHA-256 of what is counted: an e-mail address that names no user is counted like any other, and is not kept.
  counter bytea primary key check (length(counter) = 32),
  failures integer not null check (failures > 0),
  failed_at timestamptz not null,
  refused_until timestamptz not null
);
create index sign_in_failures_old on sign_in_failures (failed_at);

-- An installation without an operator could be repaired by a command only. The lock makes two operators who demote each other
-- take turns; each statement of the function sees what was committed before it.
create function keep_an_operator() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtext('midmonth operators'));
  if not exists (select from users where is_operator and disabled_at is null) then
    raise exception 'the last operator cannot be removed'
      using errcode = 'check_violation', constraint = 'an_operator_remains', table = 'users';
  end if;
  return null;
end $$;
create trigger an_operator_remains after update of is_operator, disabled_at on users
  for each row when (old.is_operator and old.disabled_at is null and (not new.is_operator or new.disabled_at is not null))
  execute function keep_an_operator();

alter table audit_log
  drop constraint audit_log_actor_kind_check,
  add constraint audit_log_actor_kind_check check (actor_kind in ('api_key', 'cli', 'worker', 'user'));

-- Like audit_log, for what concerns no partner: users, sign-ins, operators.
create table installation_audit_log (
  id id primary key,
  at timestamptz not null,
  actor_kind text not null check (actor_kind in ('cli', 'worker', 'user')),
  actor text not null check (length(actor) between 1 and 200),
  action text collate "C" not null check (action ~ '^[a-z_]+\.[a-z_]+$' and length(action) <= 60),
  resource_kind text collate "C" not null generated always as (split_part(action, '.', 1)) stored,
  resource_id text collate "C" not null check (length(resource_id) between 1 and 200),
  details jsonb not null,
  address text check (length(address) <= 100),
  request_id text check (length(request_id) <= 200),
  constraint installation_details_are_small check (octet_length(details::text) <= 65536)
);
create index installation_audit_log_of_resource on installation_audit_log (resource_id, id);
create function refuse_change_of_installation() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name
    using errcode = 'check_violation', constraint = 'append_only', table = tg_table_name;
end $$;
create trigger installation_audit_log_append_only before update or delete on installation_audit_log
  for each row execute function refuse_change_of_installation();
create trigger installation_audit_log_not_emptied before truncate on installation_audit_log
  for each statement execute function refuse_change_of_installation();

-- As before, but a reset keeps the users of the partner.
create or replace function reset_sandbox_partner(partner text) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  kept constant text[] := array['api_keys', 'tiers', 'tier_versions', 'sandbox_clocks', 'audit_log', 'event_feeds',
                                'idempotency_keys', 'webhook_endpoints', 'webhook_secrets', 'webhook_feeds', 'request_log',
                                'user_roles', 'user_invitations'];
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
