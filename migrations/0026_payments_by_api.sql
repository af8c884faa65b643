-- Payments that a bank takes one by one over its API, answering at once and later by notifications. What becomes of each is kept
-- in bank_records and payout_exceptions, as for bank files.

set local lock_timeout = '5s';

alter table payouts
  -- When the first request that may have made the payment was sent. Null if none was, or if the payment goes in a file.
  add column sent_at timestamptz,
  -- The bank's id of the payment, once it has answered.
  add column transfer_id text collate "C",
  -- The bank's number of the latest change that was applied. Notifications may arrive out of order, and older ones change nothing.
  add column transfer_sequence integer,
  add constraint transfer_was_sent check (transfer_id is null or sent_at is not null),
  add constraint transfer_has_a_sequence check ((transfer_id is null) = (transfer_sequence is null));

alter table payout_exceptions
  drop constraint payout_exceptions_kind_check,
  add constraint payout_exceptions_kind_check check (kind in
    ('unmatched', 'amount', 'contradiction', 'duplicate', 'refused', 'money_in', 'money_out', 'float', 'blocked'));
