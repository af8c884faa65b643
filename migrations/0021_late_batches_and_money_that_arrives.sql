-- A batch that is sent late takes the next value date, unless its file may be with the bank already. And money that arrives or
-- leaves without a payment is matched to the float movement that it belongs to.

set local lock_timeout = '5s';

-- How many senders have claimed the batch and not given it back. While there is one, its file keeps its bytes.
alter table payout_batches add column claims integer not null default 0 check (claims >= 0);
-- Files bear the instant of the claim. A file that may have been delivered keeps the one it was written with.
update payout_batches set claims = 1, sending_at = case when status = 'approved' then closed_at else sending_at end
 where sending_at is not null;

-- The float movement that an entry of the account is: each belongs to one of the other.
alter table bank_records add column movement_id id;
create unique index one_entry_per_movement on bank_records (movement_id) where movement_id is not null;
create index float_references_by_reference on float_references (reference);

alter table payout_exceptions
  drop constraint payout_exceptions_decision_check,
  add constraint payout_exceptions_decision_check check (decision in ('attach', 'ignore', 'give_back', 'book', 'applied'));
