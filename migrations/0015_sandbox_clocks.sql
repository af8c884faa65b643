-- On a sandbox each partner has a clock that can be moved forward, and can instruct the simulated bank. A partner can be
-- reset, which deletes its rows; a live database refuses that.

set local lock_timeout = '5s';

-- How far a partner's clock is ahead of real time. A partner that never moved its clock has no row.
create table sandbox_clocks (
  partner_id id primary key references partners,
  offset_ms bigint not null,
  constraint clock_is_at_most_400_days_ahead check (offset_ms between 0 and 34560000000)
);

-- A move of a clock. It takes as long as the work that falls due on the way, so it is a row that any process can go on with.
create table sandbox_clock_moves (
  partner_id id not null references partners,
  id id not null,
  -- The request that started it, so that a retry with the same key waits for this move instead of starting another one.
  idempotency_key text collate "C",
  starts_at timestamptz not null,
  target timestamptz not null,
  -- What fell due on the way, oldest first.
  ran jsonb not null default '[]',
  -- The process that is moving the clock, and until when no other one takes over.
  leased_by text,
  leased_until timestamptz,
  ended_at timestamptz,
  primary key (partner_id, id),
  constraint clock_moves_forward check (target >= starts_at)
);
create unique index one_clock_move_at_a_time on sandbox_clock_moves (partner_id) where ended_at is null;
create index sandbox_clock_moves_by_key on sandbox_clock_moves (partner_id, idempotency_key) where idempotency_key is not null;

-- The simulated bank reports to each partner by that partner's clock.
alter table simulated_bank_payments add column partner_id id;
alter table simulated_bank_reports add column partner_id id;
update simulated_bank_payments p set partner_id = w.partner_id from withdrawals w where w.id = p.reference;
update simulated_bank_reports r set partner_id = w.partner_id from withdrawals w where w.id = r.reference;
create index simulated_bank_reports_by_partner on simulated_bank_reports (partner_id, reported_at, sequence);

-- How the simulated bank treats one payment, whatever its account says.
create table simulated_bank_instructions (
  partner_id id not null references partners,
  reference text collate "C" not null,
  outcome text not null check (outcome in ('hold', 'paid', 'failed', 'returned')),
  reason text,
  primary key (partner_id, reference)
);

-- How the simulated bank treats a partner's next payments, in order.
create table simulated_bank_faults (
  partner_id id not null references partners,
  sequence bigint generated always as identity,
  fault text not null check (fault in ('timeout', 'error', 'duplicate', 'late', 'contradiction', 'unknown_reference')),
  remaining integer not null check (remaining between 0 and 1000),
  primary key (partner_id, sequence)
);
