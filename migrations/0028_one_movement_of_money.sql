-- One movement of money can be reported by several messages of a bank and recorded by hand. What tells these reports apart from
-- several movements is kept, and can be found by what a booking says instead of its reference alone.

set local lock_timeout = '5s';

-- The part of the money that an operator recorded without an entry of the bank. An entry that arrives later may report that money.
alter table settlement_dues add column received_by_hand bigint not null default 0;
-- How earlier parts were recorded is not known.
update settlement_dues set received_by_hand = received where received <> 0 and received <> amount;
alter table settlement_dues add constraint received_by_hand_was_received
  check (received_by_hand between least(received, 0) and greatest(received, 0));

create index bank_records_alike on bank_records (rail, booked_on, amount, bank_reference) where booked_on is not null;

-- When the bank first answered the batch or one of its payments. It has the file then, even if its delivery is not recorded.
alter table payout_batches add column answered_at timestamptz;
update payout_batches b set answered_at = coalesce(b.acknowledged_at, b.ended_at, b.sending_at)
 where b.sending_at is not null
   and (b.acknowledged_at is not null or b.ended_at is not null
        or exists (select from payouts p where p.batch_id = b.id and p.outcome is not null and p.removed_at is null));
