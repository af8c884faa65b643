-- A column with a back-fill: the word before the dot of an event's type, for events of every age.
-- compatible-with: 0001

-- step: expand
alter table events add column subject text;

-- Older programs do not write the column.
-- step: expand
create function set_event_subject() returns trigger language plpgsql as $$
begin
  new.subject := split_part(new.type, '.', 1);
  return new;
end $$;
create trigger events_set_subject before insert on events for each row execute function set_event_subject();

-- The rule that an event changes once lets the back-fill pass.
-- step: expand
create or replace trigger events_append_only before update on events
  for each row when (
    (old.position is not null or new.position is null
     or (old.partner_id, old.id, old.type, old.resource_id, old.sequence, old.data, old.created_at)
        is distinct from (new.partner_id, new.id, new.type, new.resource_id, new.sequence, new.data, new.created_at))
    and ((old.partner_id, old.id, old.type, old.resource_id, old.sequence, old.data, old.created_at, old.position, old.metadata)
        is distinct from (new.partner_id, new.id, new.type, new.resource_id, new.sequence, new.data, new.created_at, new.position, new.metadata)
        or old.subject is not null)
  )
  execute function refuse_change('events');

-- step: expand, back-fill of events by partner_id, id
update events set subject = split_part(type, '.', 1) where CHUNK and subject is null;

-- step: contract
alter table events add constraint event_has_a_subject check (subject is not null) not valid;

-- step: contract, concurrently
alter table events validate constraint event_has_a_subject;

-- The valid constraint saves reading the table, which squawk cannot know.
-- step: contract
-- squawk-ignore adding-not-nullable-field
alter table events alter column subject set not null;
alter table events drop constraint event_has_a_subject;
create or replace trigger events_append_only before update on events
  for each row when (
    old.position is not null or new.position is null
    or (old.partner_id, old.id, old.type, old.resource_id, old.sequence, old.data, old.created_at)
       is distinct from (new.partner_id, new.id, new.type, new.resource_id, new.sequence, new.data, new.created_at)
  )
  execute function refuse_change('events');
