-- A move of a clock is found again by the idempotency key of its request. With the fingerprint, a retry with the same key and
-- another body is refused; without it, the retry would have been answered with the first body's move.
-- compatible-with: 0011

set local lock_timeout = '5s';

alter table sandbox_clock_moves
  -- SHA-256 of the request, as in idempotency_keys.
  add column fingerprint bytea,
  -- How far the clock is ahead in the end, for a move by a time: computed from one instant, since a clock that is read again
  -- later has moved on. Null for a move to an instant.
  add column offset_ms bigint;
