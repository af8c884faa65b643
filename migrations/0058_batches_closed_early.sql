-- Two people can close a batch before its cut-off. Only they can, unless it is full; and a closed batch takes no payment.

set local lock_timeout = '5s';

alter table payout_batches
  -- It was closed because its file could take no more.
  add column is_full boolean not null default false;

create function refuse_change_of_closed_batch() returns trigger language plpgsql as $$
begin
  if old.closed_at is not null then
    if new.closed_at is distinct from old.closed_at
       or new.payment_count > old.payment_count or new.control_total > old.control_total then
      raise exception 'a closed batch takes no payments'
        using errcode = 'check_violation', constraint = 'closed_batch_takes_no_payments', table = 'payout_batches';
    end if;
  elsif new.closed_at < new.cut_off_at and not new.is_full and not public.is_confirmed_now(new.id, 'decision', 'close') then
    raise exception 'two people must close a batch before its cut-off'
      using errcode = 'check_violation', constraint = 'closed_early_by_two_people', table = 'payout_batches';
  end if;
  return new;
end $$;
create trigger payout_batches_stay_closed before update of closed_at, payment_count, control_total on payout_batches
  for each row execute function refuse_change_of_closed_batch();
