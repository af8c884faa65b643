-- Member jobs queue behind each other, and withdrawals that gave the money back can be listed.
--
-- A queued job is `NotReady`. When its turn comes it is decided against the members as the jobs ahead have left them, so a file
-- keeps what its first planning was given: `offboard_max`. A job of actions reports every action, also those that change nothing.

set local lock_timeout = '5s';

alter table members
  -- When the partner gave the instruction behind the latest change: the instant of the request, or the instant at which the job
  -- was sent. A queued job is applied long after it was sent; a file that was sent later still wins over it. Null: `updated_at`.
  add column instructed_at timestamptz;

alter table member_jobs
  add column offboard_max integer check (offboard_max >= 0),
  drop constraint member_jobs_status_check,
  add constraint member_jobs_status_check
    check (status in ('NotReady', 'AwaitingReview', 'Processing', 'Completed', 'Rejected')),
  drop constraint steps_done_are_of_the_plan,
  add constraint steps_done_are_of_the_plan check (
    steps_done between 0 and invite + update + bring_back + offboard + case kind when 'actions' then unchanged else 0 end
  );
-- Until now, actions that change nothing had no step.
update member_jobs set steps_done = steps_done + unchanged where kind = 'actions' and status = 'Completed';

alter table member_job_steps
  drop constraint member_job_steps_action_check,
  add constraint member_job_steps_action_check
    check (action in ('Invite', 'Update', 'BringBack', 'Offboard', 'Unchanged'));

insert into state_edges (entity, from_state, to_state) values
  ('member_jobs', 'new', 'NotReady'),
  ('member_jobs', 'NotReady', 'Processing'),
  ('member_jobs', 'NotReady', 'AwaitingReview'),
  ('member_jobs', 'NotReady', 'Rejected');

-- A partner's queue in its order, and all that the worker has to choose from.
drop index member_jobs_to_apply;
create index member_jobs_unfinished on member_jobs (partner_id, created_at, id) where ended_at is null;

-- Nearly all withdrawals end as paid. Without this index a list of the others would read them all.
create index withdrawals_given_back on withdrawals (partner_id, created_at desc, id desc)
  where status in ('failed', 'returned', 'cancelled');
