-- A bank can pay what it had refused: the money is with the member twice, once at the bank and once in the books. Such an answer is
-- a separate kind of exception, which says on which day money moved.

set local lock_timeout = '5s';

alter table payout_exceptions
  -- The day on which the bank booked the money; null if the answer moved none.
  add column booked_on date,
  drop constraint payout_exceptions_kind_check,
  add constraint payout_exceptions_kind_check check (kind in
    ('unmatched', 'amount', 'contradiction', 'duplicate', 'rejected', 'refused', 'money_in', 'money_out', 'float', 'blocked',
     'unreadable', 'paid_after_give_back'));
