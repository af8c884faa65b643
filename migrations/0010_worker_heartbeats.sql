-- Worker heartbeats: without them an API process cannot tell that no worker is alive, and withdrawals wait unseen.
--
-- Each worker process writes its row every few seconds, by the clock of the database, so that clocks of several machines need
-- not agree. The table belongs to the installation, not to a partner.

set local lock_timeout = '5s';

create table worker_heartbeats (
  worker_id text primary key,
  host text not null,
  process_id integer not null,
  started_at timestamptz not null,
  beat_at timestamptz not null
);
