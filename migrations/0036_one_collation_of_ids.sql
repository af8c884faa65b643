-- The ids of resources in events get the collation of the ids that they are compared with. With another one PostgreSQL could not use
-- the index: reading one withdrawal read all events of its partner.
-- The rows stay as they are; the unique index on events is built again, during which events can be neither read nor written.
-- Those in the answers kept for idempotency keys are not compared. They are left alone: requests lock their key before they write
-- events, so altering both tables would be a deadlock, and running processes have prepared statements that return that column.
-- compatible-with: 0026

set local lock_timeout = '5s';

-- A column that a trigger compares cannot be altered.
drop trigger events_append_only on events;
alter table events alter column resource_id type text collate "C";
create trigger events_append_only before update on events
  for each row when (
    old.position is not null or new.position is null
    or (old.partner_id, old.id, old.type, old.resource_id, old.sequence, old.data, old.created_at)
       is distinct from (new.partner_id, new.id, new.type, new.resource_id, new.sequence, new.data, new.created_at)
  )
  execute function refuse_change('events');
