-- A bank can debit a batch or a payment twice, and reports each booking in an intraday notice as well as in the statement of the
-- day. What identifies a booking is kept, so that the second report is told from the second debit.

set local lock_timeout = '5s';

alter table bank_records
  -- The account, as the bank names it.
  add column account text,
  add column booked_on date,
  -- Positive if money arrived.
  add column amount bigint,
  -- The bank's own reference of the booking, the same in all its messages.
  add column bank_reference text collate "C",
  add constraint booked_record_has_an_amount check ((booked_on is null) = (amount is null));
create index bank_records_booked on bank_records (rail, reference, booked_on) where booked_on is not null;
