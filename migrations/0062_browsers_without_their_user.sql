-- Known browsers have their own limit of sign-ins, so that a flood from their network does not lock them out. A browser is admitted
-- before the request names a user: its token is hashed without one, and signed, so that a forged token costs no lookup.

set local lock_timeout = '5s';

delete from user_browsers;
alter table user_browsers drop constraint user_browsers_pkey;
alter table user_browsers rename column hash to token_hash;
alter table user_browsers add primary key (token_hash, user_id);
