-- A member's browser needs the API without the partner's key: a session is a short-lived token for one member, bound to the
-- origin of one web page. Rows are deleted soon after they expire.
-- compatible-with: 0021

set local lock_timeout = '5s';

create table member_sessions (
  partner_id id not null references partners,
  id id not null,
  member_id id not null,
  -- The API key that created it; the session ends when the key is revoked.
  key_id id not null,
  -- SHA-256 of the whole token. The token itself is shown once.
  hash bytea not null check (length(hash) = 32),
  scope text not null check (scope in ('read', 'withdraw')),
  -- The web page that may use it; null for the hosted page.
  origin text collate "C" check (length(origin) <= 255),
  -- By real time, also on a sandbox whose clock was moved.
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (partner_id, id),
  constraint one_token_one_session unique (partner_id, hash),
  foreign key (partner_id, member_id) references members,
  foreign key (partner_id, key_id) references api_keys,
  constraint sessions_are_short check (expires_at > created_at and expires_at <= created_at + interval '15 minutes')
);
create index member_sessions_of_member on member_sessions (partner_id, member_id, id);
create index member_sessions_expired on member_sessions (expires_at);
