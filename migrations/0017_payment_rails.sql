-- Payouts through real banks: each has a reference that fits every payment scheme, files carry many of them in a batch, and
-- what a bank answers is matched to them. An answer that does not fit becomes an exception, which an operator closes.
--
-- Batches, bank files, exceptions and balances belong to the operator, whose accounts the money leaves: like rail_cursors,
-- they have no partner.

set local lock_timeout = '5s';

insert into state_edges (entity, from_state, to_state) values
  ('payout_batches', 'new', 'building'),
  ('payout_batches', 'building', 'approved'),
  -- Every payment was taken out of it.
  ('payout_batches', 'building', 'cancelled'),
  ('payout_batches', 'approved', 'cancelled'),
  ('payout_batches', 'approved', 'sent'),
  ('payout_batches', 'sent', 'acknowledged'),
  ('payout_batches', 'sent', 'settled'),
  ('payout_batches', 'sent', 'rejected'),
  ('payout_batches', 'acknowledged', 'settled'),
  ('payout_batches', 'acknowledged', 'rejected');

create table payout_batches (
  id id primary key,
  -- What the bank's answers name.
  message_id text collate "C" not null unique check (message_id ~ '^[A-Z0-9]{1,35}$'),
  rail text collate "C" not null,
  currency currency not null,
  -- The account that it is paid from: 'default', or the partner whose own account it is.
  debtor text collate "C" not null,
  value_date date not null,
  is_instant boolean not null,
  cut_off_at timestamptz not null,
  status text not null check (status in ('building', 'approved', 'sent', 'acknowledged', 'settled', 'rejected', 'cancelled')),
  held boolean not null default false,
  payment_count integer not null default 0,
  -- The sum of its payments, in minor units.
  control_total bigint not null default 0,
  file_name text,
  -- Of the file that was delivered.
  file_sha256 text collate "C",
  -- The result of a check of the payees' names, which says nothing about the payments.
  name_check text,
  created_at timestamptz not null,
  -- From here on no payment joins it.
  closed_at timestamptz,
  approved_at timestamptz,
  approved_automatically boolean not null default false,
  -- From here on no payment leaves it, and it can no longer be held.
  sending_at timestamptz,
  sent_at timestamptz,
  acknowledged_at timestamptz,
  ended_at timestamptz,
  constraint sums_are_not_negative check (payment_count >= 0 and control_total >= payment_count),
  constraint delivered_file_has_a_name check (file_sha256 is null or file_name is not null),
  constraint open_batch_is_building check (closed_at is not null or status in ('building', 'cancelled')),
  constraint sent_batch_was_fixed check (status not in ('sent', 'acknowledged', 'settled', 'rejected') or sending_at is not null)
);
create unique index one_open_batch on payout_batches (rail, debtor, value_date, is_instant)
  where status = 'building' and closed_at is null;
create index payout_batches_unsent on payout_batches (rail, cut_off_at) where status in ('building', 'approved');
create index payout_batches_unanswered on payout_batches (rail) where status in ('sent', 'acknowledged');
create trigger payout_batches_edges before insert or update of status on payout_batches
  for each row execute function refuse_unlisted_edge('payout_batches');

-- A withdrawal from when it is claimed for a bank.
create table payouts (
  partner_id id not null,
  withdrawal_id id not null,
  -- The end-to-end reference at the bank.
  reference text collate "C" not null,
  rail text collate "C" not null,
  -- What reaches the member's account.
  amount bigint not null check (amount > 0),
  currency currency not null,
  created_at timestamptz not null,
  -- In a batch, if the rail sends files: at most one, and never another one.
  batch_id id references payout_batches,
  -- When the money should be in the member's account.
  expected_at timestamptz,
  -- What a bank file said last, and the bank's code verbatim. The withdrawal follows through the reports of the rail.
  outcome text check (outcome in ('paid', 'failed', 'returned')),
  reason_code text,
  reason text,
  -- Taken out of its batch before that was sent: it was never paid.
  removed_at timestamptz,
  primary key (partner_id, withdrawal_id),
  foreign key (partner_id, withdrawal_id) references withdrawals,
  constraint reference_is_unique unique (reference),
  -- Older payments, which only a simulated bank has seen, keep the id of the withdrawal.
  constraint reference_fits_every_rail check (reference ~ '^MM[A-Z2-7]{14}$' or reference = withdrawal_id),
  constraint removed_payout_failed check (removed_at is null or outcome = 'failed')
);
create index payouts_in_batch on payouts (batch_id, reference) where batch_id is not null;
create index payouts_unanswered on payouts (batch_id) where batch_id is not null and outcome is null;

create function refuse_other_batch() returns trigger language plpgsql as $$
begin
  raise exception 'a payout keeps its reference, its amount and its batch'
    using errcode = 'check_violation', constraint = 'payouts_never_change', table = tg_table_name;
end $$;
create trigger payouts_keep_their_terms before update of reference, rail, amount, currency, batch_id, removed_at on payouts
  for each row when (
    old.reference <> new.reference or old.rail <> new.rail or old.amount <> new.amount or old.currency <> new.currency
    or (old.batch_id is not null and new.batch_id is distinct from old.batch_id)
    or (old.removed_at is not null and new.removed_at is distinct from old.removed_at))
  execute function refuse_other_batch();

-- A reset of a sandbox deletes payouts. Their batches follow, so that the sums still agree.
create function leave_batch() returns trigger language plpgsql as $$
begin
  update public.payout_batches set payment_count = payment_count - 1, control_total = control_total - old.amount
   where id = old.batch_id;
  return null;
end $$;
create trigger payouts_leave_their_batch after delete on payouts
  for each row when (old.batch_id is not null and old.removed_at is null) execute function leave_batch();

-- Until now the reference was the withdrawal's id.
insert into payouts (partner_id, withdrawal_id, reference, rail, amount, currency, created_at)
select partner_id, id, id, 'simulated-bank', net, currency, created_at
  from withdrawals where status in ('submitted', 'paid', 'failed', 'returned');

-- A payment can be instructed before it has a reference.
alter table simulated_bank_instructions rename column reference to withdrawal_id;

-- The people who approved a batch that is above the limits for automatic approval.
create table payout_batch_approvals (
  batch_id id not null references payout_batches,
  person text not null check (length(person) between 1 and 200),
  at timestamptz not null,
  constraint one_approval_per_person primary key (batch_id, person)
);

-- Each file that a bank sent, imported once.
create table bank_files (
  id id primary key,
  rail text collate "C" not null,
  sha256 text collate "C" not null,
  name text not null,
  message_id text,
  status text not null check (status in ('imported', 'rejected')),
  record_count integer not null default 0,
  -- Why it was refused whole.
  problem text,
  received_at timestamptz not null,
  constraint one_import_per_file unique (rail, sha256)
);

-- What bank files said, each record once. Those with an outcome are the reports of the rail, in this order.
create table bank_records (
  sequence bigint generated always as identity primary key,
  rail text collate "C" not null,
  -- Null if an operator took the payment out of its batch.
  bank_file_id id references bank_files,
  message_id text not null,
  entry_key text not null,
  line integer,
  reference text collate "C" not null,
  outcome text check (outcome in ('paid', 'failed', 'returned')),
  reason text,
  created_at timestamptz not null,
  constraint each_entry_counts_once unique (rail, message_id, entry_key)
);
create index bank_records_to_report on bank_records (rail, sequence) where outcome is not null;

-- Answers of a bank that did not fit, each closed by an operator's decision.
create table payout_exceptions (
  id id primary key,
  rail text collate "C" not null,
  kind text not null check (kind in ('unmatched', 'amount', 'contradiction', 'duplicate', 'refused', 'money_in', 'money_out', 'float')),
  bank_file_id id references bank_files,
  line integer,
  -- Recognises the same answer when it is read again.
  fingerprint text collate "C" not null,
  reference text collate "C",
  partner_id id,
  withdrawal_id id,
  -- What the bank says has happened to the payment.
  outcome text check (outcome in ('paid', 'failed', 'returned')),
  amount bigint,
  currency currency,
  reason_code text,
  -- A sentence for the operator.
  reason text not null,
  opened_at timestamptz not null,
  closed_at timestamptz,
  closed_by text,
  decision text check (decision in ('attach', 'ignore', 'give_back', 'applied')),
  note text,
  constraint each_exception_opens_once unique (rail, fingerprint),
  constraint closed_by_a_decision check ((closed_at is null) = (decision is null) and (closed_at is null) = (closed_by is null))
);
create index payout_exceptions_open on payout_exceptions (id) where closed_at is null;

-- The booked balance of an account at the end of a day, as the bank states it.
create table bank_balances (
  rail text collate "C" not null,
  account text collate "C" not null,
  day date not null,
  amount bigint not null,
  currency currency not null,
  bank_file_id id not null references bank_files,
  primary key (rail, account, day)
);
