-- An address identifies a person's connection and is needed only while an incident can still be followed up. Rows of the audit log stay
-- unchanged for ever, but one function takes their addresses away once they are old. Nothing else may change a row.

set local lock_timeout = '5s';

create function refuse_change_of_audit() returns trigger language plpgsql as $$
begin
  -- A generated column is not computed yet.
  if tg_op = 'UPDATE' and new.address is null
     and to_jsonb(new) - 'address' - 'resource_kind' = to_jsonb(old) - 'address' - 'resource_kind' then
    return new;
  end if;
  raise exception '% is append-only', tg_table_name
    using errcode = 'check_violation', constraint = 'append_only', table = tg_table_name;
end $$;

drop trigger audit_log_append_only on audit_log;
create trigger audit_log_append_only before update or delete on audit_log
  for each row execute function refuse_change_of_audit();
drop trigger installation_audit_log_append_only on installation_audit_log;
create trigger installation_audit_log_append_only before update or delete on installation_audit_log
  for each row execute function refuse_change_of_audit();

create index audit_log_addresses on audit_log (at) where address is not null;
create index installation_audit_log_addresses on installation_audit_log (at) where address is not null;

-- Removes the addresses of at most count_max rows per log that were written before an instant. Returns how many it removed. Runs as the
-- owner: the app role may not update the logs. A week is the least, so that an intruder cannot hide where they came from.
create function forget_audit_addresses(written_before timestamptz, count_max integer) returns integer
  language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  last timestamptz := least(written_before, now() - interval '7 days');
  of_partners integer;
  of_installation integer;
begin
  with old as (
    select partner_id, id from public.audit_log
     where address is not null and at < last order by at limit count_max for update skip locked)
  update public.audit_log a set address = null from old where a.partner_id = old.partner_id and a.id = old.id;
  get diagnostics of_partners = row_count;
  with old as (
    select id from public.installation_audit_log
     where address is not null and at < last order by at limit count_max for update skip locked)
  update public.installation_audit_log a set address = null from old where a.id = old.id;
  get diagnostics of_installation = row_count;
  return of_partners + of_installation;
end $$;
revoke execute on function forget_audit_addresses(timestamptz, integer) from public;
