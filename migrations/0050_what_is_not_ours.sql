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

create index payout_batches_by_amount on payout_batches (currency, control_total);

-- Those of some amounts that a payment, batch or settlement of ours has. A payment or batch that was paid, and of which nothing came back,
-- explains no other entry.
create function amounts_of_ours(of_currency text, among bigint[]) returns setof bigint language sql stable as $$
  with open_batches as (
    select b.control_total, coalesce(sum(p.amount), 0)::bigint as failed
      from public.payout_batches b
      left join public.payouts p on p.batch_id = b.id and p.outcome = 'failed' and p.removed_at is null
     where b.currency = of_currency and b.status in ('building', 'approved', 'sent', 'acknowledged')
     group by b.id
  )
  select a.amount from unnest(among) as a (amount)
   where exists (select from public.payouts p
                  where p.currency = of_currency and p.amount = a.amount and p.outcome is distinct from 'paid')
      or exists (select from public.payout_batches b
                  where b.currency = of_currency and b.control_total = a.amount and b.status <> 'cancelled'
                    and (b.status <> 'settled' or b.given_back_at is not null
                         or exists (select from public.payouts p
                                     where p.batch_id = b.id and p.outcome in ('failed', 'returned'))))
      or a.amount in (select unnest(array[failed, control_total - failed]) from open_batches)
      or a.amount in (select unnest(array[abs(d.amount), abs(d.amount - d.received)])
                        from public.settlement_dues d where d.currency = of_currency)
$$;

-- Whether a text holds a reference of a payment, batch or settlement of ours, in any letter case, with anything between its characters.
create function holds_reference_of_ours(words text) returns boolean language sql stable as $$
  with plain as materialized (select regexp_replace(upper(words), '[^A-Z0-9]', '', 'g') as text)
  select exists (
    select from plain, generate_series(1, length(plain.text) - 15) as at
     where substr(plain.text, at, 2) = 'MM'
       and (exists (select from public.payouts where reference = substr(plain.text, at, 16))
            or exists (select from public.payout_batches where message_id = substr(plain.text, at, 17))
            or (substr(plain.text, at, 3) = 'MMS'
                and exists (select from public.pay_cycles where upper(right(id, 14)) = substr(plain.text, at + 3, 14)))))
$$;

-- Once per statement, since a statement closes up to 20,000 entries. An entry is opened before it is closed by its text.
create function refuse_closing_ours_by_text() returns trigger language plpgsql as $$
begin
  if exists (
       select from (select c.currency, array_agg(distinct abs(c.amount)) as amounts
                      from closed c join opened o on o.id = c.id
                     where c.closed_by_text is distinct from o.closed_by_text and c.closed_by_text is not null
                     group by c.currency) as c,
                   public.amounts_of_ours(c.currency, c.amounts))
     or exists (
       select from closed c join opened o on o.id = c.id
        where c.closed_by_text is distinct from o.closed_by_text and c.closed_by_text is not null
          and public.holds_reference_of_ours(concat_ws(' ', c.reference, c.bank_text))) then
    raise exception 'an entry that may be about a payment, batch or settlement of ours is not closed by its text'
      using errcode = 'check_violation', constraint = 'nothing_of_ours_is_closed_by_text', table = 'payout_exceptions';
  end if;
  return null;
end $$;
create trigger payout_exceptions_not_ours after update on payout_exceptions
  referencing old table as opened new table as closed
  for each statement execute function refuse_closing_ours_by_text();

create function refuse_opening_as_closed() returns trigger language plpgsql as $$
begin
  raise exception 'an entry is opened before it is closed by its text'
    using errcode = 'check_violation', constraint = 'nothing_of_ours_is_closed_by_text', table = 'payout_exceptions';
end $$;
create trigger payout_exceptions_open_first before insert on payout_exceptions
  for each row when (new.closed_by_text is not null) execute function refuse_opening_as_closed();
