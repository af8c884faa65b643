-- Members in bulk: a job is a batch of actions, or a file that is the complete list of members.
--
-- A job of a file keeps its rows as they were understood (null where a column is absent or a cell empty), so that the plan can
-- be made, applied and told of by set. A step is one thing to do; what a file leaves as it is has none. A row's step has the
-- row's number, an action's its place, and who is missing in a file comes after all rows. Steps are taken in their order, many
-- at once, and `applied_through` moves in the transaction that takes them: after a kill the next one goes on from there.
-- Rows and steps are written by the million, before their job and in its transaction, so that they have no key into it.

set local lock_timeout = '5s';

alter table partners
  -- A file that would offboard more than this share of the members waits for somebody to say yes.
  add column offboard_review_percent integer not null default 10 check (offboard_review_percent between 0 and 100);

create table member_jobs (
  partner_id id not null,
  id id not null,
  kind text not null check (kind in ('actions', 'file')),
  -- Of a file: the columns that it has, in their order; and whether empty bank cells remove an account.
  columns text[] not null,
  removes_accounts boolean not null,
  -- The last row of the file; 0 without one.
  row_to integer not null,
  status text not null check (status in ('AwaitingReview', 'Processing', 'Completed', 'Rejected')),
  -- The plan in numbers.
  invite integer not null,
  update integer not null,
  bring_back integer not null,
  offboard integer not null,
  unchanged integer not null,
  steps_done integer not null default 0,
  applied_through integer not null default 0,
  created_at timestamptz not null,
  reviewed_at timestamptz,
  ended_at timestamptz,
  -- Since when its rows and steps are forgotten; the numbers stay.
  forgotten_at timestamptz,
  primary key (partner_id, id),
  constraint steps_done_are_of_the_plan check (steps_done between 0 and invite + update + bring_back + offboard),
  constraint job_ends_once check ((ended_at is not null) = (status in ('Completed', 'Rejected')))
);
create unique index one_member_job_at_a_time on member_jobs (partner_id) where status in ('AwaitingReview', 'Processing');
create index member_jobs_to_apply on member_jobs (created_at) where status = 'Processing';
create index member_jobs_to_forget on member_jobs (ended_at) where forgotten_at is null;
insert into state_edges (entity, from_state, to_state) values
  ('member_jobs', 'new', 'AwaitingReview'),
  ('member_jobs', 'new', 'Processing'),
  ('member_jobs', 'AwaitingReview', 'Processing'),
  ('member_jobs', 'AwaitingReview', 'Rejected'),
  ('member_jobs', 'Processing', 'Completed'),
  ('member_jobs', 'Processing', 'Rejected');
create trigger member_jobs_births before insert on member_jobs
  for each row execute function refuse_unlisted_edge();
create trigger member_jobs_edges before update of status on member_jobs
  for each row when (old.status is distinct from new.status) execute function refuse_unlisted_edge();

create table member_job_rows (
  partner_id id not null,
  job_id id not null,
  -- As a spreadsheet counts: the header is 1.
  row integer not null,
  -- Of the member that the row makes, if it makes one.
  new_member_id id not null,
  email text not null,
  first_name text not null,
  last_name text not null,
  phone text,
  tier text not null,
  worker_id text,
  account_holder text,
  sort_code text,
  account_number text,
  iban text,
  dob date,
  gender text check (gender in ('Female', 'Male', 'NonBinary')),
  enable_payroll boolean,
  -- What speaks against the row, unless the member has it so already.
  faults text,
  primary key (partner_id, job_id, row)
);

create table member_job_steps (
  partner_id id not null,
  job_id id not null,
  step integer not null,
  action text not null check (action in ('Invite', 'Update', 'BringBack', 'Offboard')),
  member_id id not null,
  -- An action as it was asked for; null for a row of a file.
  wish jsonb,
  -- Why it could not be taken, when what was planned was not possible any more.
  fault text,
  primary key (partner_id, job_id, step)
);

-- As in migration 3: the state that every row is born in is named in the condition, and whoever writes members was let in by a
-- key of that partner.
drop trigger members_births on members;
create trigger members_births before insert on members
  for each row when (new.status <> 'invited') execute function refuse_unlisted_edge();
alter table members drop constraint members_partner_id_fkey;

-- Active and invited members are found by their e-mail in the unique index: only the inactive need another one, and a new
-- member is entered in neither twice.
drop index members_by_email;
create index inactive_members_by_email on members (partner_id, lower(email), id desc) where status = 'inactive';

-- No table of statistics says how rare an e-mail is in lower case, since both indexes hold only some of the members: the planner
-- takes each for half a percent of all, and looks up a million of them one by one.
create statistics members_by_email on (lower(email)) from members;
-- Not while there is nobody: of a table that was seen to be empty the planner expects nothing, and reads all of it for ever after.
do $$
begin
  if exists (select from members) then
    analyze members;
  end if;
end $$;
