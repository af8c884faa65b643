-- A first import had a step for each of its invitations, which was a sixth of what it wrote. Now the action that most rows
-- of a file have needs no steps. And members are cheaper to insert: a regular expression costs some microseconds per row.

set local lock_timeout = '5s';

alter table member_jobs
  -- The action of a file's rows that have no step.
  add column rest_action text not null default 'Unchanged' check (rest_action in ('Invite', 'Unchanged'));

-- How many actions of a running batch have been carried out. The batch is one transaction, so its own row of `member_jobs`
-- shows nothing until the end; this one is written over another connection. Only what `GET` shows depends on it.
create table member_job_progress (
  partner_id id not null,
  job_id id not null,
  steps_done integer not null check (steps_done >= 0),
  primary key (partner_id, job_id)
);

alter table members
  drop constraint members_sort_code_check,
  drop constraint members_account_number_check,
  add constraint members_sort_code_check
    check (octet_length(sort_code) = 6 and btrim(sort_code, '0123456789') = ''),
  add constraint members_account_number_check
    check (octet_length(account_number) = 8 and btrim(account_number, '0123456789') = '');
