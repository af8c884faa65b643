-- A bank can debit a batch or a payment twice, and reports each booking in an intraday notice as well as in the statement of the
-- day. What identifies a booking is kept, so that the second report is told from the second debit.

set local lock_timeout = '5s';

alter table bank_records
  -- The account, as the bank names it.
  add column account text,
  add column booked_on date,
  -- Positive if money arrived.
  add column amount bigint,
  -- The bank's own reference of the booking, the same in all its messages.
  add column bank_reference text collate "C",
  add constraint booked_record_has_an_amount check ((booked_on is null) = (amount is null));
create index bank_records_booked on bank_records (rail, reference, booked_on) where booked_on is not null;

-- What payroll has settled is not in the float before the money is on the account. Until then it is a receivable.
alter table ledger_transfers
  drop constraint accounts_exist,
  add constraint accounts_exist check (
    debit in ('earned_pay', 'member_available', 'member_owed', 'payouts_pending', 'float', 'fees', 'partner_fees', 'funding', 'carried', 'written_off', 'payroll_receivable')
    and credit in ('earned_pay', 'member_available', 'member_owed', 'payouts_pending', 'float', 'fees', 'partner_fees', 'funding', 'carried', 'written_off', 'payroll_receivable')
  );

-- Money that is to arrive for a settlement. A settlement whose money was in the float at once has no row.
create table settlement_dues (
  partner_id id not null,
  pay_cycle_id id not null,
  currency currency not null,
  -- What payroll took. Negative if it gave back more than it took: the operator owes that.
  amount bigint not null check (amount <> 0),
  received bigint not null default 0,
  settled_at timestamptz not null,
  -- When the last of it arrived.
  received_at timestamptz,
  primary key (partner_id, pay_cycle_id, currency),
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  constraint received_at_most_what_is_due check (received between least(amount, 0) and greatest(amount, 0))
);
-- Finds a pay cycle by the reference that payroll's transfer bears: MMS and these characters.
create index pay_cycles_by_reference on pay_cycles (upper(right(id, 14)));
