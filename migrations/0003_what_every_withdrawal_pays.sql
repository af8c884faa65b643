-- What every withdrawal pays for its fences. The states that nearly all rows are born in, and the edge that nearly all
-- intents take, are named in the triggers' conditions, which cost nothing; the table of edges is asked about all others. The
-- keys of rows into partners go: whoever writes these rows was let in by a key of that partner, or holds the partner's row,
-- and what names a member, a cycle or a tier version still names one of the same partner.

set local lock_timeout = '5s';

drop trigger withdrawal_intents_births on withdrawal_intents;
create trigger withdrawal_intents_births before insert on withdrawal_intents
  for each row when (new.status <> 'pending') execute function refuse_unlisted_edge();
drop trigger withdrawal_intents_edges on withdrawal_intents;
create trigger withdrawal_intents_edges before update of status on withdrawal_intents
  for each row when (old.status is distinct from new.status and (old.status <> 'pending' or new.status <> 'completed'))
  execute function refuse_unlisted_edge();
drop trigger withdrawals_births on withdrawals;
create trigger withdrawals_births before insert on withdrawals
  for each row when (new.status <> 'held') execute function refuse_unlisted_edge();

alter table withdrawal_intents drop constraint withdrawal_intents_partner_id_fkey;
alter table ledger_transfers drop constraint ledger_transfers_partner_id_fkey;
alter table events drop constraint events_partner_id_fkey;
alter table idempotency_keys drop constraint idempotency_keys_partner_id_fkey;
