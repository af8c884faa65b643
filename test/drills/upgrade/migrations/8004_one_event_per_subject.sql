-- A unique key, in each partition: the events of a resource have one subject.
-- compatible-with: 0001

-- Partitions that are made from now on have the index.
-- step: expand
do $$
declare
  source text := pg_get_functiondef('make_partition(text, date)'::regprocedure);
  before text := '-- Each row is updated once, when it gets its place in the feed.';
begin
  if position(before in source) = 0 then
    raise exception 'make_partition has changed';
  end if;
  execute replace(source, before,
    'execute format(''create unique index %I on public.%I (partner_id, resource_id, subject_number, sequence)'', ''one_event_per_subject_'' || suffix, name);'
    || E'\n    ' || before);
end $$;

-- step: expand, concurrently, each partition of events
create unique index concurrently one_event_per_subject_PARTITION on events_PARTITION (partner_id, resource_id, subject_number, sequence);
