-- A proposed decision ends when its exception is closed or its payment is answered, so that no second person confirms what is settled.
-- It is kept with the reason, which a late confirmation is told.

set local lock_timeout = '5s';

alter table payout_proposals
  add column ended_at timestamptz,
  -- A sentence for operators.
  add column ended_because text check (length(ended_because) between 1 and 500),
  add constraint ended_with_a_reason check ((ended_at is null) = (ended_because is null)),
  add constraint ended_or_confirmed check (ended_at is null or confirmed_in is null);
drop index one_open_proposal_per_subject;
create unique index one_open_proposal_per_subject on payout_proposals (subject) where confirmed_in is null and ended_at is null;
create index payout_proposals_ended on payout_proposals (subject, ended_at) where ended_at is not null;

create function end_proposal_of_exception() returns trigger language plpgsql as $$
begin
  update public.payout_proposals set ended_at = new.closed_at, ended_because =
         case when new.closed_by <> 'system' then format('%s has closed the exception with %s', new.closed_by, new.decision)
              when new.decision = 'ignore' then 'A rule has closed the exception'
              else 'A later answer of the bank or another decision has closed the exception' end
   where subject = new.id and confirmed_in is null and ended_at is null;
  return null;
end $$;
create trigger payout_exceptions_end_proposals after update of closed_at on payout_exceptions
  for each row when (old.closed_at is null and new.closed_at is not null)
  execute function end_proposal_of_exception();

-- By statement: an answer can end 100,000 payments, and proposals are few.
create function end_proposals_of_payments() returns trigger language plpgsql as $$
begin
  if not exists (select from public.payout_proposals where confirmed_in is null and ended_at is null) then
    return null;
  end if;
  update public.payout_proposals proposed set ended_at = now(), ended_because =
         format('A file of the bank or another decision has said that the payment is %s', changed.outcome)
    from changed join earlier on earlier.reference = changed.reference
   where proposed.subject = changed.reference and proposed.confirmed_in is null and proposed.ended_at is null
     and changed.outcome is distinct from earlier.outcome;
  return null;
end $$;
create trigger payouts_end_proposals after update on payouts
  referencing old table as earlier new table as changed
  for each statement execute function end_proposals_of_payments();
