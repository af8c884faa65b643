-- What operators decide about answers of banks: a payment that was made after its money was given back is recovered from the member,
-- or written off at the operator's cost.

set local lock_timeout = '5s';

alter table payout_exceptions
  -- Of a report that could not be recorded: the exception whose decision recovers the payment.
  add column recovery_id id,
  -- What the bank says in words about money, for the operator who decides.
  add column bank_text text check (length(bank_text) <= 1000),
  drop constraint payout_exceptions_decision_check,
  add constraint payout_exceptions_decision_check check (decision in
    ('attach', 'ignore', 'give_back', 'book', 'applied', 'recover', 'write_off'));

alter table bank_records
  -- Only of a record by which a payment is recovered: the exception that decides it.
  add column recovery_id id;
create index bank_records_recoveries on bank_records (rail, reference, sequence) where recovery_id is not null;

-- A withdrawal whose money the member had again, though the bank paid it.
create table withdrawal_recoveries (
  partner_id id not null,
  withdrawal_id id not null,
  -- The exception that was closed by this decision.
  exception_id id not null references payout_exceptions,
  -- In the first two, the member did not have the money again yet, and nothing was taken.
  from_status text not null check (from_status in ('submitted', 'paid', 'failed', 'returned')),
  -- The cycle in which the money was given back, and the one in which it is taken again.
  given_back_in_cycle_id id,
  pay_cycle_id id,
  -- What was available; the rest of net and fee is owed.
  taken_amount bigint not null check (taken_amount >= 0),
  recovered_at timestamptz not null,
  primary key (partner_id, withdrawal_id, exception_id),
  foreign key (partner_id, withdrawal_id) references withdrawals,
  foreign key (partner_id, given_back_in_cycle_id) references pay_cycles,
  foreign key (partner_id, pay_cycle_id) references pay_cycles,
  constraint only_what_was_given_back_is_taken check (
    (from_status in ('failed', 'returned')) = (given_back_in_cycle_id is not null)
    and (given_back_in_cycle_id is null) = (pay_cycle_id is null)
    and (pay_cycle_id is not null or taken_amount = 0))
);
create trigger withdrawal_recoveries_append_only before update or delete on withdrawal_recoveries
  for each row execute function refuse_change('withdrawal_recoveries');

-- The exception by whose decision it was recovered, the last one. The trigger below checks it.
alter table withdrawals add column recovered_by id;

insert into state_edges (entity, from_state, to_state) values
  ('withdrawals', 'failed', 'paid'),
  ('withdrawals', 'returned', 'paid');

-- The two transitions exist for a decision that recovers the withdrawal, and each decision counts once.
create function refuse_recovery_without_decision() returns trigger language plpgsql as $$
begin
  if new.recovered_by is null or new.recovered_by is not distinct from old.recovered_by or not exists (
    select from public.withdrawal_recoveries r join public.payout_exceptions e on e.id = r.exception_id
     where r.partner_id = new.partner_id and r.withdrawal_id = new.id and r.exception_id = new.recovered_by and e.decision = 'recover'
  ) then
    raise exception 'a withdrawal becomes paid after % only by a decision that recovers it', old.status
      using errcode = 'check_violation', constraint = 'recovered_by_a_decision', table = 'withdrawals';
  end if;
  return new;
end $$;
create trigger withdrawals_recoveries before update of status on withdrawals
  for each row when (old.status in ('failed', 'returned') and new.status = 'paid')
  execute function refuse_recovery_without_decision();

-- What the operator pays: the float lacks it until the operator covers it.
create table float_costs (
  partner_id id not null references partners,
  movement_id id not null,
  exception_id id references payout_exceptions,
  amount bigint not null check (amount > 0),
  currency currency not null,
  created_at timestamptz not null,
  primary key (partner_id, movement_id),
  constraint one_cost_per_exception_and_partner unique (partner_id, exception_id)
);
create trigger float_costs_append_only before update or delete on float_costs
  for each row execute function refuse_change('float_costs');
create index ledger_transfers_of_operator_costs on ledger_transfers (partner_id, currency, id)
  where debit = 'operator_costs' or credit = 'operator_costs';
alter table float_references
  drop constraint float_references_direction_check,
  add constraint float_references_direction_check check (direction in ('fund', 'withdraw', 'cover'));

-- A decision that takes two people, which one has made: another confirms exactly this one, or it is withdrawn. The audit log keeps both.
create table payout_proposals (
  -- The exception, or the reference of the payment.
  subject text collate "C" primary key,
  -- As text, so that the confirmation compares it as it is.
  decision text not null,
  note text not null,
  person text not null check (length(person) between 1 and 200),
  -- The login at the operating system; null for a user of the console.
  login text collate "C" check (length(login) between 1 and 200),
  proposed_at timestamptz not null
);
