-- A request that was sent and not answered may have made its payment, so the money must not be given back. Until now only the first
-- request was recorded, and an operator could give back a payment that the bank accepted when the request was repeated.

set local lock_timeout = '5s';

alter table payouts
  -- When the latest request was sent whose effect is not known: it was neither answered nor certainly refused, and a look-up has not
  -- shown that the bank does not have the payment. Null if there is none.
  add column request_open_at timestamptz,
  add constraint open_request_was_sent check (request_open_at is null or sent_at is not null),
  add constraint answered_request_is_not_open check (request_open_at is null or transfer_id is null);

-- The worker asks about these and settles the question.
update payouts set request_open_at = sent_at where sent_at is not null and transfer_id is null and outcome is null;

alter table payout_exceptions
  drop constraint payout_exceptions_kind_check,
  add constraint payout_exceptions_kind_check check (kind in
    ('unmatched', 'amount', 'contradiction', 'duplicate', 'refused', 'money_in', 'money_out', 'float', 'blocked', 'unreadable'));

-- Nothing is sent through a rail while it is held. One row per hold, so that it stays known who stopped what.
create table payout_rail_holds (
  sequence bigint generated always as identity primary key,
  rail text collate "C" not null,
  held_at timestamptz not null,
  held_by text not null check (length(held_by) between 1 and 200),
  released_at timestamptz,
  released_by text check (length(released_by) between 1 and 200),
  constraint released_by_a_person check ((released_at is null) = (released_by is null))
);
create unique index rail_is_held_once on payout_rail_holds (rail) where released_at is null;

alter table payout_batch_approvals
  -- The login at the operating system that approved it, as far as the machine can tell; null for an approval over the API.
  add column login text collate "C" check (length(login) between 1 and 200);

-- A payment that an API refused because the paying account lacked the money is requested again later, as another transfer.
alter table payouts
  -- The bank's ids of the transfers that it refused, oldest first. The next request has a new idempotency key.
  add column refused_transfers text[] not null default '{}',
  -- Not before.
  add column retry_at timestamptz;
