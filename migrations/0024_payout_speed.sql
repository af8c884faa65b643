-- A tier can ask for instant payouts, or for standard ones, whatever the rail does by default.

set local lock_timeout = '5s';

-- Null: as the rail is set.
alter table tier_versions add column payout_speed text check (payout_speed in ('standard', 'instant'));
