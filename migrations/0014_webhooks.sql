-- Webhooks: without them a partner learns of a state change only by polling the feed.
--
-- Deliveries are fanned out from the numbered feed of the partner, after the commit of the event, so that no operation writes
-- more than before. A delivery is the pair of an endpoint and an event, and the event's id is its id within the endpoint.
-- compatible-with: 0010

set local lock_timeout = '5s';

create table webhook_endpoints (
  partner_id id not null references partners,
  id id not null,
  url text not null check (char_length(url) <= 2048),
  description text check (char_length(description) <= 200),
  types text[] not null check (cardinality(types) between 1 and 50),
  -- Further headers of each request, by name.
  headers jsonb not null default '{}',
  enabled boolean not null default true,
  -- Why the endpoint is disabled; null if it is enabled.
  disabled_reason text check (disabled_reason in ('requested', 'failing', 'gone')),
  created_at timestamptz not null,
  -- Deleted endpoints are kept until their deliveries have been deleted.
  deleted_at timestamptz,
  -- Only events after this position of the feed are delivered.
  since_position bigint not null,
  -- Flow control: failed attempts since the last success, and until when no attempt is made.
  failure_count integer not null default 0,
  blocked_until timestamptz,
  -- Health: since when there has been no success, the number of days with failures since then, and the last of them.
  failing_since timestamptz,
  failing_days integer not null default 0,
  last_failing_day date,
  -- The service has disabled the endpoint, and no attempt has succeeded since.
  is_recovering boolean not null default false,
  -- When the next delivery or replay is due; null if there is none.
  due_at timestamptz,
  -- The real time at which the lease of the process that makes the deliveries expires.
  leased_until timestamptz,
  primary key (partner_id, id),
  constraint disabled_for_a_reason check (enabled = (disabled_reason is null))
);
create index webhook_endpoints_due on webhook_endpoints (due_at) where due_at is not null;
create index webhook_endpoints_deleted on webhook_endpoints (deleted_at) where deleted_at is not null;

-- The secrets that sign. During a rotation there are several.
create table webhook_secrets (
  partner_id id not null,
  endpoint_id id not null,
  secret text not null,
  created_at timestamptz not null,
  -- Null for the current one.
  expires_at timestamptz,
  primary key (partner_id, endpoint_id, secret),
  foreign key (partner_id, endpoint_id) references webhook_endpoints
);
create unique index one_current_webhook_secret on webhook_secrets (partner_id, endpoint_id) where expires_at is null;

-- How far the feed of a partner with endpoints has been fanned out. The row is the lock under which that is done.
create table webhook_feeds (
  partner_id id primary key references partners,
  position bigint not null check (position >= 0)
);

-- No foreign keys: rows are written under the lock of their endpoint, and checking each one would lock it again.
create table webhook_deliveries (
  partner_id id not null,
  endpoint_id id not null,
  event_id id not null,
  type text not null,
  state text not null check (state in ('pending', 'delivered', 'failed', 'skipped')),
  -- The body of a test. Any other body is made from the event.
  sample jsonb,
  created_at timestamptz not null,
  -- All attempts, and those of them that the retry schedule made.
  attempt_count integer not null default 0,
  scheduled_count integer not null default 0,
  last_attempt_at timestamptz,
  -- The next attempt of the retry schedule.
  due_at timestamptz,
  -- A single attempt that was requested: a replay or a test.
  replay_at timestamptz,
  primary key (partner_id, endpoint_id, event_id),
  constraint only_pending_deliveries_are_due check (due_at is null or state = 'pending')
);
create index webhook_deliveries_due on webhook_deliveries (partner_id, endpoint_id, due_at) where due_at is not null;
create index webhook_deliveries_to_replay on webhook_deliveries (partner_id, endpoint_id, replay_at)
  where replay_at is not null;
create index webhook_deliveries_by_state on webhook_deliveries (partner_id, endpoint_id, state, event_id);
create index webhook_deliveries_by_type on webhook_deliveries (partner_id, endpoint_id, type, event_id);

create table webhook_attempts (
  partner_id id not null,
  endpoint_id id not null,
  event_id id not null,
  number integer not null check (number > 0),
  reason text not null check (reason in ('schedule', 'replay', 'test')),
  at timestamptz not null,
  duration_ms integer not null check (duration_ms >= 0),
  -- Null if there was no answer.
  status integer,
  -- Null for a success.
  error text check (error in ('status', 'redirect', 'gone', 'timeout', 'dns', 'connection', 'tls', 'address', 'protocol')),
  -- The beginning of the answer's body; null if there was no answer.
  response text,
  primary key (partner_id, endpoint_id, event_id, number)
);
