-- Employers' fees are a receivable of the partner, paid by invoice. A separate operation takes collected fees out of the float. What
-- changes fees after their withdrawal is found by an index, for statements by month.

set local lock_timeout = '5s';

insert into state_edges (entity, from_state, to_state) values
  ('invoices', 'new', 'open'),
  ('invoices', 'open', 'paid'),
  ('invoices', 'open', 'void'),
  ('invoices', 'paid', 'open');

create table invoices (
  partner_id id not null references partners,
  id id not null,
  -- Counts the partner's invoices, without gaps.
  number integer not null check (number >= 1),
  currency currency not null,
  status text not null check (status in ('open', 'paid', 'void')),
  -- The first day with a fee, and the last day that the invoice is for.
  first_day date not null,
  last_day date not null,
  sum bigint not null constraint an_invoice_has_a_sum check (sum > 0),
  issued_at timestamptz not null,
  -- How it was paid.
  paid_reference text check (length(paid_reference) between 1 and 140),
  paid_on date,
  primary key (partner_id, id),
  constraint one_invoice_per_number unique (partner_id, number),
  constraint a_paid_invoice_says_how check ((status = 'paid') = (paid_on is not null) and (paid_on is null) = (paid_reference is null)),
  check (first_day <= last_day)
);
create trigger invoices_edges before insert or update of status on invoices
  for each row execute function refuse_unlisted_edge('invoices');
create trigger invoices_keep before update on invoices
  for each row when (
    (old.partner_id, old.id, old.number, old.currency, old.first_day, old.last_day, old.sum, old.issued_at)
    is distinct from (new.partner_id, new.id, new.number, new.currency, new.first_day, new.last_day, new.sum, new.issued_at))
  execute function refuse_change('invoices');

create table invoice_lines (
  partner_id id not null,
  invoice_id id not null,
  day date not null,
  tier text not null,
  -- Charged, and given back. Less than zero where an earlier invoice named another day.
  withdrawals integer not null,
  fees bigint not null,
  given_back integer not null,
  fees_given_back bigint not null,
  primary key (partner_id, invoice_id, day, tier),
  foreign key (partner_id, invoice_id) references invoices
);
create trigger invoice_lines_append_only before update or delete on invoice_lines
  for each row execute function refuse_change('invoice_lines');

-- Fees that were given back, charged again, collected or paid. The charge of a withdrawal is found by its time.
create index ledger_transfers_of_fees on ledger_transfers (partner_id, id)
  where debit = 'fees' or (credit = 'fees' and reason <> 'withdrawal.held');

alter table float_references
  drop constraint float_references_direction_check,
  add constraint float_references_direction_check check (direction in ('fund', 'withdraw', 'cover', 'revenue'));

-- The lock on the partner makes these take turns. A fee that is booked back later may have been taken out before.
create function refuse_uncollected_revenue() returns trigger language plpgsql as $$
begin
  if new.amount > (select coalesce(sum(f.collected), 0) from public.fee_collections f
                    where f.partner_id = new.partner_id and f.currency = new.currency)
                - (select coalesce(sum(r.amount), 0) from public.float_references r
                    where r.partner_id = new.partner_id and r.currency = new.currency and r.direction = 'revenue') then
    raise exception 'more than the collected fees cannot be taken out of the float'
      using errcode = 'check_violation', constraint = 'revenue_was_collected', table = 'float_references';
  end if;
  return new;
end $$;
create trigger float_references_of_revenue before insert on float_references
  for each row when (new.direction = 'revenue') execute function refuse_uncollected_revenue();
