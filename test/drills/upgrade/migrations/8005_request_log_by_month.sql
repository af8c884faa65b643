-- A partitioned table in the place of an ordinary one: the request log, so that old months can be dropped. The table becomes the partition
-- of all requests until the end of the next month; the later months get their own.
-- compatible-with: 0001

-- step: expand
do $$
begin
  execute format('alter table request_log add constraint request_log_until check (id < %L) not valid',
                 first_id('req', date_trunc('month', now() at time zone 'UTC') + interval '2 months'));
end $$;

-- step: expand, concurrently
alter table request_log validate constraint request_log_until;

-- Attaching needs no reading, since the constraint is valid.
-- step: expand
do $$
declare
  until text := first_id('req', date_trunc('month', now() at time zone 'UTC') + interval '2 months');
  right_of record;
begin
  alter table request_log rename to request_log_until_now;
  create table request_log (like request_log_until_now including defaults, primary key (partner_id, id)) partition by range (id);
  create index on request_log (partner_id, id) where status >= 400;
  create index on request_log (partner_id, resource_id, id) where resource_id is not null;
  create index on request_log (partner_id, idempotency_key, id) where idempotency_key is not null;
  create index on request_log (partner_id, request_id, id) where request_id is not null;
  execute format('alter table request_log attach partition request_log_until_now for values from (minvalue) to (%L)', until);
  create table request_log_default partition of request_log default;
  -- The programs that are running keep their rights, from the moment that the new table has the name.
  for right_of in
    select privilege_type, grantee::regrole::text as role, '' as columns
      from pg_class, aclexplode(relacl) where oid = 'request_log_until_now'::regclass and grantee <> relowner and grantee <> 0
    union all
    select privilege_type, grantee::regrole::text, format('(%I)', attname)
      from pg_attribute, aclexplode(attacl) where attrelid = 'request_log_until_now'::regclass and grantee <> 0
  loop
    execute format('grant %s %s on request_log to %s', right_of.privilege_type, right_of.columns, right_of.role);
  end loop;
end $$;

-- step: contract
alter table request_log_until_now drop constraint request_log_until;
