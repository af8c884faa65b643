-- A bank that gets a file twice pays the first copy and rejects the second. What a rejection of a whole batch is worth depends on how
-- often its file left, and on whether the bank has shown that it took a copy. Both are kept here.

set local lock_timeout = '5s';

-- Each time that the file of a batch left, or may have left: an attempt to deliver it that was killed is a copy, too.
create table payout_batch_copies (
  batch_id id not null references payout_batches,
  number integer not null check (number > 0),
  kind text not null check (kind in ('delivery', 'export', 'download')),
  -- Null: the worker.
  person text check (length(person) between 1 and 200),
  at timestamptz not null,
  -- At the bank.
  day date not null,
  primary key (batch_id, number),
  constraint worker_delivers check ((kind = 'delivery') = (person is null))
);

alter table payout_batches
  drop column claims,
  -- When the bank first showed that it took a copy of the file; null if it has not.
  add column copy_taken_at timestamptz,
  -- When the whole batch was given back because the bank rejected it.
  add column given_back_at timestamptz,
  -- When a statement showed that the bank did not pay a batch that was given back. Until then people approve the rail's batches.
  add column brake_released_at timestamptz,
  add constraint only_sent_copies_are_taken check (copy_taken_at is null or sending_at is not null),
  add constraint only_sent_batches_are_given_back check (given_back_at is null or sending_at is not null),
  add constraint brake_follows_give_back check (brake_released_at is null or given_back_at is not null);

create index payout_batches_with_brake on payout_batches (rail) where given_back_at is not null and brake_released_at is null;

-- The batches that a file rejects as a whole, with the reasons. That shows only in the whole file, which is applied in pieces.
alter table bank_files add column rejected_batches text not null default '[]';

alter table payout_exceptions
  drop constraint payout_exceptions_kind_check,
  add constraint payout_exceptions_kind_check check (kind in
    ('unmatched', 'amount', 'contradiction', 'duplicate', 'rejected', 'refused', 'money_in', 'money_out', 'float', 'blocked',
     'unreadable'));
