-- The rest of a withdrawal's life: payouts through a bank, pay cycles that open and close by a schedule, deductions,
-- settlement with payroll, and the float that pays for it all.

set local lock_timeout = '5s';

alter table partners
  -- How long a withdrawal waits before it goes to the bank, and can be cancelled.
  add column hold_seconds integer not null default 30 check (hold_seconds between 0 and 86400),
  add column cycle_schedule text not null default 'monthly'
    check (cycle_schedule in ('weekly', 'two_weekly', 'four_weekly', 'semi_monthly', 'monthly')),
  -- A day on which a cycle of the schedule starts; for 'monthly' its day of the month counts, 'semi_monthly' needs none.
  add column cycle_anchor date not null default '2024-01-01',
  add constraint monthly_anchor_is_in_every_month
    check (cycle_schedule <> 'monthly' or extract(day from cycle_anchor) <= 28),
  -- What becomes of what payroll could not take.
  add column shortfall_policy text not null default 'carry' check (shortfall_policy in ('carry', 'write_off'));

alter table pay_cycles
  add column closed_at timestamptz,
  add column settled_at timestamptz,
  add constraint closed_has_its_time check ((status = 'Closed') = (closed_at is not null)),
  add constraint only_closed_is_settled check (settled_at is null or status = 'Closed');

alter table pay_runs
  add column reverted_at timestamptz,
  add constraint reverted_has_its_time check ((status = 'Reverted') = (reverted_at is not null));
create index pay_runs_newest on pay_runs (partner_id, created_at desc, id desc);

alter table withdrawals
  -- When the next step with the bank is due: the submission, or asking what became of it. Null when nothing is to do.
  add column due_at timestamptz,
  add column attempts integer not null default 0 check (attempts >= 0),
  -- Why the last edge was taken, in the words of the bank or of the caller.
  add column reason text,
  -- The cycle that a late failure or return was given back in, when its own had closed by then.
  add column adjusted_in_cycle_id id,
  -- What the member had available when this withdrawal had been booked; the order of concurrent bookings is known then only.
  add column balance_after bigint constraint member_not_overdrawn check (balance_after >= 0),
  add foreign key (partner_id, adjusted_in_cycle_id) references pay_cycles;
-- What was held before this migration goes to the bank after it.
update withdrawals set due_at = created_at where status = 'held';
update withdrawals w
   set balance_after = greatest(0, (
         select coalesce(sum(case when t.credit = 'member_available' then t.amount
                                  when t.debit = 'member_available' then -t.amount else 0 end), 0)
           from ledger_transfers t
          where t.partner_id = w.partner_id and t.member_id = w.member_id and t.currency = w.currency
            and t.id <= (select max(own.id) from ledger_transfers own
                          where own.partner_id = w.partner_id and own.movement_id = w.id)));
alter table withdrawals
  alter column balance_after set not null,
  -- No withdrawal is ever forgotten on its way, and none is taken up again at its end.
  add constraint unfinished_is_due check ((due_at is not null) = (status in ('held', 'submitted')));
create index withdrawals_due on withdrawals (status, due_at) where due_at is not null;
-- A bank reports by our reference, which is the id, and knows nothing of partners.
create index withdrawals_by_reference on withdrawals (id);

-- A transfer may now also carry a shortfall between two cycles, and money may come in from the operator.
alter table ledger_transfers
  drop constraint accounts_exist,
  add constraint accounts_exist check (
    debit in ('earned_pay', 'member_available', 'member_owed', 'payouts_pending', 'float', 'fees', 'partner_fees', 'funding', 'carried', 'written_off')
    and credit in ('earned_pay', 'member_available', 'member_owed', 'payouts_pending', 'float', 'fees', 'partner_fees', 'funding', 'carried', 'written_off')
  ),
  drop constraint member_is_named,
  add constraint member_is_named check (
    member_id is not null
    or (debit not in ('member_available', 'member_owed', 'earned_pay', 'carried')
        and credit not in ('member_available', 'member_owed', 'earned_pay', 'carried'))
  ),
  -- Transactions do not commit in the order of ids: a sum up to here is final once no older transaction is open.
  add column transaction_id xid8 not null default pg_current_xact_id();
create index ledger_transfers_by_cycle on ledger_transfers (partner_id, pay_cycle_id, member_id)
  where debit = 'earned_pay' or credit = 'earned_pay';
create index ledger_transfers_of_float on ledger_transfers (partner_id, currency, transaction_id)
  where debit in ('float', 'payouts_pending') or credit in ('float', 'payouts_pending');
-- A member's statement, as of any instant: its lines by time, and within one millisecond by transaction.
drop index ledger_transfers_by_member;
create index ledger_transfers_of_member on ledger_transfers (partner_id, member_id, currency, created_at, transaction_id, id)
  where debit in ('member_available', 'member_owed') or credit in ('member_available', 'member_owed');

-- Several events of one resource in one transaction keep their order. An event of a transaction that began before an
-- earlier event's is placed after that one: the place is its own transaction or a later one, never an earlier.
drop index events_feed;
create index events_feed on events (partner_id, transaction_id, sequence, id);
-- The feed of some types: each of them is a range of this, however rare it is among the others.
create index events_feed_of_type on events (partner_id, type, transaction_id, sequence, id);

-- What float and payouts_pending added up to before a transaction, so that nobody sums the whole past.
create table ledger_snapshots (
  partner_id id not null references partners,
  currency currency not null,
  -- All transactions before this one had ended when the snapshot was taken: their transfers are in, and no others.
  before_transaction xid8 not null,
  -- Debits less credits.
  float_balance bigint not null,
  -- Credits less debits.
  pending_balance bigint not null,
  primary key (partner_id, currency)
);

-- The operator's watch over the float of a partner in a currency. Without a row nobody watches.
create table float_limits (
  partner_id id not null references partners,
  currency currency not null,
  floor bigint not null check (floor >= 0),
  -- Since when the float has been below the floor; null while it is not.
  low_since timestamptz,
  primary key (partner_id, currency)
);

-- How far the reports of a rail have been read.
create table rail_cursors (
  rail text primary key,
  cursor text not null,
  read_at timestamptz not null
);

-- What payroll really took, once per cycle, line by line as it was told.
create table settlement_lines (
  partner_id id not null,
  pay_cycle_id id not null,
  member_id id not null,
  currency currency not null,
  deducted bigint not null,
  taken bigint not null,
  outcome text not null check (outcome in ('matched', 'short', 'over', 'unknown')),
  -- Positive: still to be taken, in the next cycle; negative: to be given back there.
  carried bigint not null default 0,
  written_off bigint not null default 0,
  primary key (partner_id, pay_cycle_id, member_id, currency),
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  foreign key (partner_id, member_id) references members
);

-- The simulated bank's own books: to us it is an outside system, and it must remember across our restarts.
create table simulated_bank_payments (
  reference text collate "C" primary key,
  behaviour text not null,
  amount bigint not null,
  currency currency not null,
  submissions integer not null default 1,
  received_at timestamptz not null
);
create table simulated_bank_reports (
  sequence bigint generated always as identity primary key,
  reference text collate "C" not null,
  outcome text not null check (outcome in ('paid', 'failed', 'returned')),
  reason text,
  -- A report becomes visible at this instant; the bank knows the future.
  reported_at timestamptz not null
);
create index simulated_bank_reports_of on simulated_bank_reports (reference, reported_at);
