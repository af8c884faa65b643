-- A bank's reason for refusing or returning a payment can be about the member: the account is wrong, or the operator has to look
-- at the member. Both refuse withdrawals until they are cleared.

set local lock_timeout = '5s';

alter table members
  -- Why the bank refused the account, until it is changed.
  add column account_refused text,
  -- Why the member is held for review, until the operator releases the member.
  add column review_reason text,
  alter column account_refused set statistics 0,
  alter column review_reason set statistics 0;

-- The program does the same; this holds for every other way of changing an account too.
create function clear_refused_account() returns trigger language plpgsql as $$
begin
  new.account_refused := null;
  return new;
end $$;
create trigger changed_account_is_not_refused before update of account_holder, sort_code, account_number, iban on members
  for each row when (
    old.account_refused is not null
    and (old.account_holder, old.sort_code, old.account_number, old.iban)
        is distinct from (new.account_holder, new.sort_code, new.account_number, new.iban))
  execute function clear_refused_account();

-- What follows for the member from the bank's reason; null if nothing does.
alter table payouts add column restriction text check (restriction in ('account_refused', 'review'));
alter table simulated_bank_instructions add column restriction text check (restriction in ('account_refused', 'review'));
alter table simulated_bank_reports add column restriction text check (restriction in ('account_refused', 'review'));
-- For a report that could not be recorded, so that it has the same effect when it is tried again.
alter table payout_exceptions add column restriction text check (restriction in ('account_refused', 'review'));
