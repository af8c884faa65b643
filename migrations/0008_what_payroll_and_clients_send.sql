-- What strict clients and payroll exports send, and the first schema refused: an idempotency key is any header value of up
-- to 1,024 characters, and a pay run may have lines of zero, which change nothing. And what they read: events with Money.

set local lock_timeout = '5s';

-- At most 2,048 bytes, so that the primary key still fits into a page of its index (2,704 bytes for an entry).
alter table idempotency_keys
  drop constraint idempotency_keys_key_check,
  add constraint idempotency_keys_key_check check (length(key) between 1 and 1024);

alter table pay_run_lines drop constraint pay_run_lines_amount_check;

-- Events carry Money as Money objects, as every answer does. Those that are in the feed already are rewritten, so that a reader
-- meets one shape only; no amount changes. Expired intents had none, and get those that were quoted.
alter table events disable trigger user;
update events e
   set data = e.data - 'currency' || jsonb_build_object(
         'amount', jsonb_build_object('amount', e.data -> 'amount', 'currency', e.data -> 'currency'),
         'fee', jsonb_build_object('amount', e.data -> 'fee', 'currency', e.data -> 'currency'),
         'netAmount', jsonb_build_object('amount', e.data -> 'netAmount', 'currency', e.data -> 'currency'))
 where (e.type like 'intent.%' or e.type like 'withdrawal.%') and e.data ? 'currency';
update events e
   set data = e.data || jsonb_build_object(
         'payCycleId', i.pay_cycle_id,
         'amount', jsonb_build_object('amount', i.amount, 'currency', i.currency),
         'fee', jsonb_build_object('amount', i.fee, 'currency', i.currency),
         'netAmount', jsonb_build_object('amount', i.net, 'currency', i.currency))
  from withdrawal_intents i
 where e.type = 'intent.expired' and i.partner_id = e.partner_id and i.id = e.resource_id;
update events e
   set data = jsonb_build_object(
         'free', jsonb_build_object('amount', e.data -> 'free', 'currency', e.data -> 'currency'),
         'floor', jsonb_build_object('amount', e.data -> 'floor', 'currency', e.data -> 'currency'))
 where e.type = 'float.low' and e.data ? 'currency';
alter table events enable trigger user;
