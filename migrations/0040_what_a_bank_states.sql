-- A statement is kept as a whole: with the balance at its beginning and its numbers, so that a statement that never arrived is
-- noticed. Until now only the balance at the end of a day was kept. What the statements do not add up to is an exception.

set local lock_timeout = '5s';

drop table bank_balances;

-- What a bank states of an account in one statement. A day has several if they differ in their numbers.
create table bank_statements (
  rail text collate "C" not null,
  account text collate "C" not null,
  day date not null,
  -- The first day that it covers whole; the last is its day. Null unless it has a closing balance.
  covers_from date check (covers_from <= day),
  electronic_number bigint,
  legal_number bigint,
  opening bigint,
  closing bigint,
  currency currency not null,
  bank_file_id id not null references bank_files,
  constraint one_statement_per_day_and_number unique nulls not distinct (rail, account, day, electronic_number, legal_number)
);

-- When the accounts of a rail were last compared with the books.
create table bank_reconciliations (
  rail text collate "C" primary key,
  at timestamptz not null
);

alter table payout_exceptions
  -- The account that the bank's file is about, as the bank names it.
  add column account text collate "C",
  drop constraint payout_exceptions_kind_check,
  add constraint payout_exceptions_kind_check check (kind in
    ('unmatched', 'amount', 'contradiction', 'paid_after_give_back', 'duplicate', 'rejected', 'refused', 'money_in', 'money_out', 'float',
     'blocked', 'unreadable', 'statement_gap', 'opening_balance', 'bank_balance'));
