-- Entries of a bank that are not ours are closed by their text: many at once, or by a rule as they come. Neither may touch what can be
-- the money of a payment.

set local lock_timeout = '5s';

create table payout_rules (
  id id primary key,
  rail text collate "C" not null,
  -- Folded: lower case, single blanks.
  text text not null check (length(text) between 5 and 140),
  note text not null,
  status text not null check (status in ('proposed', 'active', 'paused', 'ended')),
  proposed_by text not null check (length(proposed_by) between 1 and 200),
  proposed_at timestamptz not null,
  confirmed_by text check (length(confirmed_by) between 1 and 200),
  confirmed_at timestamptz,
  ended_at timestamptz,
  constraint a_rule_takes_two_people check (
    (confirmed_by is null) = (confirmed_at is null) and confirmed_by is distinct from proposed_by
    and (status in ('proposed', 'ended') or confirmed_by is not null)),
  check ((status = 'ended') = (ended_at is not null))
);
create unique index one_live_rule_per_text on payout_rules (rail, text) where status <> 'ended';

alter table payout_exceptions
  -- The text by which it was closed together with others, and the rule that did it, if any.
  add column closed_by_text text,
  add column rule_id id references payout_rules,
  add constraint closed_by_text_is_ignored_money check (
    closed_by_text is null or (decision = 'ignore' and kind in ('money_in', 'money_out', 'unmatched') and amount is not null
                               and partner_id is null and withdrawal_id is null)),
  add constraint rules_close_by_text check (rule_id is null or closed_by_text is not null);
create index payout_exceptions_of_rules on payout_exceptions (rule_id) where rule_id is not null;

-- What an entry of the same amount may be about.
create index payouts_not_paid on payouts (currency, amount) where outcome is distinct from 'paid';

-- The application asks for more: references in the texts, batches and settlements.
create function refuse_closing_ours_by_text() returns trigger language plpgsql as $$
begin
  if exists (select from public.payouts p
              where p.currency = new.currency and p.amount = abs(new.amount) and p.outcome is distinct from 'paid')
     or exists (select from public.payouts p where p.reference in (new.reference, upper(new.reference)))
     or exists (select from public.payout_batches b where b.rail = new.rail and b.message_id = upper(new.reference)) then
    raise exception 'an entry that may be about a payment of ours is not closed by its text'
      using errcode = 'check_violation', constraint = 'nothing_of_ours_is_closed_by_text', table = 'payout_exceptions';
  end if;
  return new;
end $$;
create trigger payout_exceptions_not_ours before insert or update of closed_by_text on payout_exceptions
  for each row when (new.closed_by_text is not null) execute function refuse_closing_ours_by_text();
