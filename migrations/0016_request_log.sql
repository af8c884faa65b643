-- The request log: what each partner asked in the last days and how it was answered, so that a developer can find a request
-- without asking the operator. No bodies, no queries, nothing personal.
--
-- Rows are written in batches, deleted after a week, and never updated. No foreign key: checking it would lock the partner's
-- row for each batch, and the log may outlive nothing of importance.
-- compatible-with: 0011

set local lock_timeout = '5s';

create table request_log (
  partner_id id not null,
  id id not null,
  -- The caller's own x-request-id, which need not be unique; null if it sent none, and then ours is the id.
  request_id text collate "C",
  created_at timestamptz not null,
  method text not null,
  -- Null if no operation has this path.
  route text,
  path text not null,
  status integer not null,
  duration_ms integer not null,
  key_id id not null,
  idempotency_key text collate "C",
  is_replayed boolean not null,
  error_codes text[] not null,
  resource_id id,
  primary key (partner_id, id)
);
-- Partial, so that an ordinary request costs few index entries.
create index request_log_of_errors on request_log (partner_id, id) where status >= 400;
create index request_log_of_resource on request_log (partner_id, resource_id, id) where resource_id is not null;
create index request_log_of_idempotency_key on request_log (partner_id, idempotency_key, id)
  where idempotency_key is not null;
create index request_log_of_request_id on request_log (partner_id, request_id, id) where request_id is not null;
