-- Past years of transfers can be detached (docs/operations/detached-years.md): their months move to another schema, which the program cannot
-- read, and their sums take their place.
-- compatible-with: 0001

-- step: expand
create schema if not exists detached;

create table detached_months (
  month date primary key,
  -- Those that no seal covers have stayed as well.
  transfers bigint not null,
  detached_at timestamptz not null
);

-- The sums of the detached transfers of members, by year, as in ledger_member_seals.
create table detached_member_sums (
  year integer not null,
  partner_id id not null,
  member_id id not null,
  currency currency not null,
  transfers bigint not null,
  sequence bigint not null,
  pay_cycle_id id,
  earned_pay bigint not null,
  member_available bigint not null,
  member_owed bigint not null,
  carried bigint not null,
  written_off bigint not null,
  payouts_pending bigint not null,
  float bigint not null,
  fees bigint not null,
  partner_fees bigint not null,
  payroll_receivable bigint not null,
  primary key (partner_id, member_id, currency, year)
);

-- The sums of the detached payments that seals cover.
create table detached_payment_sums (
  year integer not null,
  partner_id id not null,
  pay_cycle_id id not null,
  currency currency not null,
  amount bigint not null,
  primary key (partner_id, pay_cycle_id, currency, year)
);
