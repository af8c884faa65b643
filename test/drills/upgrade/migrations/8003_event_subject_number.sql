-- Another type for a column: events have the number of their subject, no longer its name. The new type has a new column, because a column
-- that changes its type is rewritten under a lock, and prepared statements of running programs would fail.
-- compatible-with: 0001

-- step: expand
alter table events add column subject_number smallint;

-- step: expand
create function number_of_subject(subject text) returns smallint language sql immutable as $$
  select (array_position(array['member', 'job', 'pay_run', 'pay_cycle', 'intent', 'withdrawal', 'float'], subject))::smallint
$$;
create function set_event_subject_number() returns trigger language plpgsql as $$
begin
  new.subject_number := coalesce(public.number_of_subject(split_part(new.type, '.', 1)), 0::smallint);
  return new;
end $$;
create trigger events_set_subject_number before insert on events for each row execute function set_event_subject_number();

-- step: expand
create or replace trigger events_append_only before update on events
  for each row when (
    (old.position is not null or new.position is null
     or (old.partner_id, old.id, old.type, old.resource_id, old.sequence, old.data, old.created_at)
        is distinct from (new.partner_id, new.id, new.type, new.resource_id, new.sequence, new.data, new.created_at))
    and ((old.partner_id, old.id, old.type, old.resource_id, old.sequence, old.data, old.created_at, old.position, old.metadata)
        is distinct from (new.partner_id, new.id, new.type, new.resource_id, new.sequence, new.data, new.created_at, new.position, new.metadata)
        or old.subject_number is not null)
  )
  execute function refuse_change('events');

-- step: expand, back-fill of events by partner_id, id
update events set subject_number = coalesce(number_of_subject(split_part(type, '.', 1)), 0::smallint)
 where CHUNK and subject_number is null;

-- step: contract
alter table events add constraint event_has_a_subject_number check (subject_number is not null) not valid;

-- step: contract, concurrently
alter table events validate constraint event_has_a_subject_number;

-- step: contract
-- squawk-ignore adding-not-nullable-field
alter table events alter column subject_number set not null;
alter table events drop constraint event_has_a_subject_number;
drop trigger if exists events_set_subject on events;
drop function set_event_subject();
alter table events drop column subject;
create or replace trigger events_append_only before update on events
  for each row when (
    old.position is not null or new.position is null
    or (old.partner_id, old.id, old.type, old.resource_id, old.sequence, old.data, old.created_at)
       is distinct from (new.partner_id, new.id, new.type, new.resource_id, new.sequence, new.data, new.created_at)
  )
  execute function refuse_change('events');
