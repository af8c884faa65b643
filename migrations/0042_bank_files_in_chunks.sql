-- A bank file is checked whole, and then applied in chunks, so that payouts need not wait for all of it. Until now one transaction
-- applied it, and held the lock of the rail for as long as the file was long.

set local lock_timeout = '5s';

alter table bank_files
  drop constraint bank_files_status_check,
  add constraint bank_files_status_check check (status in ('importing', 'imported', 'rejected')),
  -- Of record_count, how many are applied.
  add column applied_count integer not null default 0;
update bank_files set applied_count = record_count;
alter table bank_files
  add constraint imported_means_all_applied check (applied_count <= record_count and (status <> 'imported' or applied_count = record_count));
create index bank_files_importing on bank_files (rail, received_at, id) where status = 'importing';

-- The records of files that are being imported, until they are applied. They are applied step by step, and those of one step
-- partner by partner: the transaction that applies some also deletes them.
create table staged_bank_records (
  bank_file_id id not null,
  step integer not null,
  -- Whose payments or money they are about; empty if no partner's.
  partner_id id not null,
  -- In the file.
  place integer not null,
  record text not null,
  primary key (bank_file_id, step, partner_id, place)
);

-- The other columns of a booking are asked for with its amount. The reference keeps thousands of bookings apart to which a bank has
-- given one reference.
drop index bank_records_alike;
create index bank_records_alike on bank_records (rail, amount, bank_reference, reference, booked_on) where booked_on is not null;

-- Batches whose unanswered payments all end, and of which some are left. A batch can have 100,000 of them, and payouts must not wait
-- until the last is recorded.
create table payout_batch_endings (
  batch_id id primary key references payout_batches,
  rail text collate "C" not null,
  outcome text not null check (outcome in ('paid', 'failed')),
  reason_code text,
  -- Of the records of the payments: each has the beginning of the key, and its reference.
  message_id text not null,
  key_prefix text not null,
  bank_file_id id references bank_files,
  line integer,
  decided_at timestamptz not null
);

-- Partner by partner.
drop index payouts_unanswered;
create index payouts_unanswered on payouts (batch_id, partner_id, reference) where batch_id is not null and outcome is null;
