-- A user has one account at the OpenID provider. Until now a second account with the same verified e-mail address became the same
-- user. Rows from before have no `linked_at`, and stay: a user may have several, which an operator can unlink. Also: known browsers
-- are forgotten by an index, since reading all of them every minute took 30 ms for 100,000.
-- compatible-with: 0026

set local lock_timeout = '5s';

alter table user_identities add column linked_at timestamptz;
create unique index one_identity_per_user on user_identities (user_id) where linked_at is not null;

create index user_browsers_unused on user_browsers (last_used_at);
