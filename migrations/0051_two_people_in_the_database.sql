-- Two people decide what gives back a batch, writes money off, or is about a payment that two people had to approve. The application
-- asks them; this refuses such a decision unless the transaction that makes it has also recorded who proposed and who confirmed it.

set local lock_timeout = '5s';

-- What look like two spellings of one name, as the application compares them: a name may be followed by a login in brackets.
create function same_person(a text, b text) returns boolean language sql immutable as $$
  select lower(btrim(regexp_replace(normalize(regexp_replace(a, ' \([^()]*\)$', ''), nfkc), '\s+', ' ', 'g')))
       = lower(btrim(regexp_replace(normalize(regexp_replace(b, ' \([^()]*\)$', ''), nfkc), '\s+', ' ', 'g')))
$$;

-- A confirmed proposal is kept.
alter table payout_proposals
  drop constraint payout_proposals_pkey,
  add column confirmed_by text check (length(confirmed_by) between 1 and 300),
  add column confirmed_login text collate "C" check (length(confirmed_login) between 1 and 200),
  -- The transaction that carries the decision out.
  add column confirmed_in xid8,
  add constraint confirmed_by_another_person check (
    (confirmed_by is null) = (confirmed_in is null)
    and (confirmed_login is null or confirmed_by is not null)
    and (confirmed_by is null
         or (not public.same_person(person, confirmed_by) and (login is null) = (confirmed_login is null))));
create unique index one_open_proposal_per_subject on payout_proposals (subject) where confirmed_in is null;
create index payout_proposals_confirmed on payout_proposals (subject) where confirmed_in is not null;

-- `field`: the one of the decision that says what is decided.
create function is_confirmed_now(of_subject text, field text, decided text) returns boolean language sql stable as $$
  select exists (select from public.payout_proposals
                  where subject = of_subject and decision::jsonb ->> field = decided
                    and confirmed_in = pg_current_xact_id_if_assigned())
$$;

create function refuse_decision_of_one() returns trigger language plpgsql as $$
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
               -- An answer without a reference of ours is attached by a record.
               or b.id in (select p.batch_id from public.bank_records r join public.payouts p on p.reference = r.reference
                            where r.rail = new.rail and r.message_id = 'operator' and r.entry_key = new.id)))) then
    raise exception 'two people must decide %', new.decision
      using errcode = 'check_violation', constraint = 'decided_by_two_people', table = 'payout_exceptions';
  end if;
  return new;
end $$;
create trigger payout_exceptions_two_people before update of decision on payout_exceptions
  for each row when (new.decision is not null and new.decision is distinct from old.decision)
  execute function refuse_decision_of_one();

create function refuse_outcome_of_one() returns trigger language plpgsql as $$
begin
  if not public.is_confirmed_now(new.reference, 'outcome', new.outcome) and exists (
    select from public.payouts p join public.payout_batches b on b.id = p.batch_id
     where p.reference = new.reference and not b.approved_automatically
  ) then
    raise exception 'two people must decide that % is %', new.reference, new.outcome
      using errcode = 'check_violation', constraint = 'decided_by_two_people', table = 'bank_records';
  end if;
  return new;
end $$;
create trigger bank_records_two_people before insert on bank_records
  for each row when (new.message_id = 'operator' and new.entry_key like 'by hand %')
  execute function refuse_outcome_of_one();
