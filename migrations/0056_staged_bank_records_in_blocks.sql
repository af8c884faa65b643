-- Each row of staged records holds many: a row for each record, with the head of its message, cost more to write and to read back
-- than parsing the file.

set local lock_timeout = '5s';

alter table staged_bank_records
  drop column record,
  -- Of the message that the records are in, as JSON.
  add column head text not null,
  add column record_count integer not null check (record_count > 0),
  -- As a JSON array, in the order of the file; `place` is that of the first.
  add column records text not null,
  -- They are read once and deleted. Compressing them would take longer than writing them.
  alter column records set storage external;
