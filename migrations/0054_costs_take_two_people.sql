-- The operator bears a cost, in a write-off or as a charge of the bank, only if two people decide. And what is recovered is not always
-- named by the answer: the decision names it.

set local lock_timeout = '5s';

create index bank_records_of_recovery on bank_records (recovery_id) where recovery_id is not null;

create function refuse_cost_of_one() returns trigger language plpgsql as $$
begin
  if not exists (
    select from public.payout_proposals
     where confirmed_in = pg_current_xact_id_if_assigned() and (new.exception_id is null or subject = new.exception_id)
  ) then
    raise exception 'two people must decide that the operator bears a cost'
      using errcode = 'check_violation', constraint = 'decided_by_two_people', table = 'float_costs';
  end if;
  return new;
end $$;
create trigger float_costs_two_people before insert on float_costs for each row execute function refuse_cost_of_one();

create or replace function refuse_decision_of_one() returns trigger language plpgsql as $$
begin
  if (new.closed_by = 'system' and new.decision in ('applied', 'ignore')) or public.is_confirmed_now(new.id, 'decision', new.decision) then
    return new;
  end if;
  if new.closed_by = 'system' or new.decision = 'write_off'
     or (new.decision = 'give_back' and exists (
       select from public.payout_batches b where b.rail = new.rail and b.message_id = new.reference))
     or (new.decision in ('give_back', 'recover', 'attach') and exists (
       select from public.payout_batches b
        where b.rail = new.rail and not b.approved_automatically
          and (b.message_id = new.reference
               or b.id in (select p.batch_id from public.payouts p where p.rail = new.rail and p.reference = new.reference)
               -- An answer without a reference of ours is attached, or recovers payments, by records.
               or b.id in (select p.batch_id from public.bank_records r join public.payouts p on p.reference = r.reference
                            where r.rail = new.rail and r.message_id = 'operator' and r.entry_key = new.id)
               or b.id in (select p.batch_id from public.bank_records r join public.payouts p on p.reference = r.reference
                            where r.recovery_id = new.id)))) then
    raise exception 'two people must decide %', new.decision
      using errcode = 'check_violation', constraint = 'decided_by_two_people', table = 'payout_exceptions';
  end if;
  return new;
end $$;
