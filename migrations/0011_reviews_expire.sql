-- A job that waits for a review holds up every later job of its partner, so it does not wait forever: after as many days as
-- the partner's setting says, it is rejected.
-- compatible-with: 0010

set local lock_timeout = '5s';

alter table partners
  add column review_days integer not null default 14 check (review_days between 1 and 365);

alter table member_jobs
  -- Since when the job waits for a review; null if it never had to.
  add column review_since timestamptz;
-- Those that wait already have the whole time from now on.
update member_jobs set review_since = now() where status = 'AwaitingReview';
