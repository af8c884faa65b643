-- Whose money it is: a fee is the operator's only once the money of its settlement has arrived. What each settlement covers of each
-- fee is kept, so that a fee is collected once, and what is booked back later was collected before.

set local lock_timeout = '5s';

alter table ledger_transfers
  drop constraint accounts_exist,
  add constraint accounts_exist check (
    debit in ('earned_pay', 'member_available', 'member_owed', 'payouts_pending', 'float', 'fees', 'partner_fees', 'funding', 'carried', 'written_off', 'payroll_receivable', 'operator_costs', 'revenue', 'fees_receivable', 'operator_account')
    and credit in ('earned_pay', 'member_available', 'member_owed', 'payouts_pending', 'float', 'fees', 'partner_fees', 'funding', 'carried', 'written_off', 'payroll_receivable', 'operator_costs', 'revenue', 'fees_receivable', 'operator_account')
  );

-- What the settlement of a pay cycle covers of the fee of a withdrawal. A shortfall leaves a part uncovered, which the next cycle
-- carries or the partner bears: the parts of a fee follow each other.
create table settlement_fees (
  partner_id id not null,
  withdrawal_id id not null,
  part integer not null check (part >= 1),
  pay_cycle_id id not null,
  currency currency not null,
  fee bigint not null check (fee > 0),
  -- The part of the fee that this settlement could cover.
  due bigint not null check (due > 0),
  covered bigint not null check (covered >= 0),
  written_off bigint not null check (written_off >= 0),
  carried bigint not null check (carried >= 0),
  carried_to id,
  -- When the member got the fee back.
  released_at timestamptz,
  primary key (partner_id, withdrawal_id, part),
  foreign key (partner_id, withdrawal_id) references withdrawals,
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  foreign key (partner_id, carried_to) references pay_cycles,
  constraint the_whole_fee_is_due_first check (part > 1 or due = fee),
  constraint at_most_the_fee_is_due check (due <= fee),
  constraint covered_written_off_and_carried_are_due check (due = covered + written_off + carried),
  constraint carried_to_a_cycle check ((carried > 0) = (carried_to is not null))
);
create index settlement_fees_carried on settlement_fees (partner_id, carried_to) where carried_to is not null;
create index settlement_fees_by_cycle on settlement_fees (partner_id, pay_cycle_id, withdrawal_id);

create function refuse_other_part_of_fee() returns trigger language plpgsql as $$
declare
  earlier record;
begin
  select s.* into earlier from public.settlement_fees s
   where s.partner_id = new.partner_id and s.withdrawal_id = new.withdrawal_id and s.part = new.part - 1;
  if not found or new.fee <> earlier.fee
     or (earlier.released_at is not null and new.due <> new.fee)
     or (earlier.released_at is null and (new.due, new.pay_cycle_id) is distinct from (earlier.carried, earlier.carried_to)) then
    raise exception 'a fee is covered once: what is due after another part is what that carried'
      using errcode = 'check_violation', constraint = 'a_fee_is_covered_once', table = 'settlement_fees';
  end if;
  return new;
end $$;
create trigger settlement_fees_parts before insert on settlement_fees
  for each row when (new.part > 1) execute function refuse_other_part_of_fee();
create trigger settlement_fees_keep before update on settlement_fees
  for each row when (
    old.released_at is not null
    or (old.partner_id, old.withdrawal_id, old.part, old.pay_cycle_id, old.currency, old.fee, old.due, old.covered, old.written_off, old.carried, old.carried_to)
       is distinct from
       (new.partner_id, new.withdrawal_id, new.part, new.pay_cycle_id, new.currency, new.fee, new.due, new.covered, new.written_off, new.carried, new.carried_to))
  execute function refuse_change('settlement_fees');

-- The fees that the settlement of a pay cycle covers, and what of them has become revenue.
create table fee_collections (
  partner_id id not null,
  pay_cycle_id id not null,
  currency currency not null,
  covered bigint not null,
  collected bigint not null,
  primary key (partner_id, pay_cycle_id, currency),
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  constraint collected_at_most_what_is_covered check (collected between 0 and covered)
);
