-- The program runs as a role that owns nothing. What grants cannot say is said here: rows of which some columns may change
-- keep the others whoever asks, the owner included; what only an owner may do is a function; and older programs can tell
-- whether they can serve a newer schema.

set local lock_timeout = '5s';

-- The table of state changes is named with its schema: a session's temporary tables are found first, so that a temporary
-- table of the same name could otherwise allow any change.
create or replace function refuse_unlisted_edge() returns trigger language plpgsql as $$
declare
  was text := case tg_op when 'INSERT' then 'new' else old.status end;
begin
  if not exists (
    select from public.state_edges where entity = tg_table_name and from_state = was and to_state = new.status
  ) then
    raise exception '% may not go from % to %', tg_table_name, was, new.status
      using errcode = 'check_violation', constraint = 'only_listed_edges', table = tg_table_name;
  end if;
  return new;
end $$;

-- An intent is a snapshot of what the member was promised: the amounts, and the account that they go to. A withdrawal is paid
-- to the account of its intent, so it keeps its intent, too. One trigger each, because every withdrawal pays for them.
create function refuse_other_terms() returns trigger language plpgsql as $$
begin
  raise exception '% keeps the terms that it was made with', tg_table_name
    using errcode = 'check_violation', constraint = 'terms_never_change', table = tg_table_name;
end $$;

drop trigger withdrawal_intents_money on withdrawal_intents;
create trigger withdrawal_intents_terms before update on withdrawal_intents
  for each row when (
    (old.partner_id, old.id, old.member_id, old.pay_cycle_id, old.currency, old.amount, old.net, old.fee, old.employer_fee,
     old.tier, old.tier_version, old.account_holder, old.sort_code, old.account_number, old.iban, old.created_at, old.expires_at)
    is distinct from
    (new.partner_id, new.id, new.member_id, new.pay_cycle_id, new.currency, new.amount, new.net, new.fee, new.employer_fee,
     new.tier, new.tier_version, new.account_holder, new.sort_code, new.account_number, new.iban, new.created_at, new.expires_at))
  execute function refuse_other_terms();

drop trigger withdrawals_money on withdrawals;
create trigger withdrawals_terms before update on withdrawals
  for each row when (
    (old.partner_id, old.id, old.withdrawal_intent_id, old.member_id, old.pay_cycle_id, old.currency, old.amount, old.net,
     old.fee, old.employer_fee, old.balance_after, old.created_at)
    is distinct from
    (new.partner_id, new.id, new.withdrawal_intent_id, new.member_id, new.pay_cycle_id, new.currency, new.amount, new.net,
     new.fee, new.employer_fee, new.balance_after, new.created_at))
  execute function refuse_other_terms();

drop function refuse_other_money();

-- A key only ever loses power: once revoked it stays revoked, its expiry never moves away, its scopes never change.
create function refuse_key_revival() returns trigger language plpgsql as $$
begin
  raise exception 'an API key cannot be revived or changed; create another one'
    using errcode = 'check_violation', constraint = 'keys_are_never_revived', table = tg_table_name;
end $$;
create trigger api_keys_never_revived before update on api_keys
  for each row when (
    (old.partner_id, old.id, old.mode, old.hash, old.hint, old.scopes, old.created_at)
    is distinct from (new.partner_id, new.id, new.mode, new.hash, new.hint, new.scopes, new.created_at)
    or (old.revoked_at is not null and new.revoked_at is distinct from old.revoked_at)
    or coalesce(new.expires_at, 'infinity') > coalesce(old.expires_at, 'infinity'))
  execute function refuse_key_revival();

-- As for the books: a trigger for each row does not see `truncate`.
create trigger tier_versions_not_emptied before truncate on tier_versions
  for each statement execute function refuse_change();
create trigger events_not_emptied before truncate on events
  for each statement execute function refuse_change();

-- Only a table's owner may analyze it (before PostgreSQL 17 there is no grant for that), and a large import cannot wait for
-- autovacuum to notice.
create function analyze_tables(variadic names text[]) returns void
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  name text;
begin
  foreach name in array names loop
    execute format('analyze (skip_locked) public.%I', name);
  end loop;
end $$;
revoke execute on function analyze_tables(text[]) from public;

-- A program that is older than the schema looks here whether it can serve it. A migration whose file says
-- `-- compatible-with: 0012` has a row: programs that know migration 0012 can serve it. Without a row only programs that know
-- the migration itself can.
create table schema_compatibility (
  migration text primary key,
  compatible_with text not null check (compatible_with ~ '^[0-9]{4}$')
);
