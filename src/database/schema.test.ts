import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { snakeCase } from '../kernel/text.ts'
import { sql } from './database.ts'
import { tablePlaces } from './table-places.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

// An index cannot be used for a comparison with a column of another collation.
test('every column with one of our ids has the same collation', async () => {
  const { rows } = await sql<{ place: string }>`
    select c.relname || '.' || a.attname as place
      from pg_attribute a
      join pg_class c on c.oid = a.attrelid
      join pg_collation l on l.oid = a.attcollation
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not a.attisdropped
       and (a.attname = 'id' or a.attname like '%\\_id') and l.collname <> 'C'
     order by 1`.execute(harness.db)
  expect(rows.map(({ place }) => place)).toEqual([
    // Ids from callers and banks.
    'audit_log.request_id',
    'bank_files.message_id',
    'disclosures.request_id',
    'installation_audit_log.request_id',
    'payout_batch_endings.message_id',
  ])
})

// A new release of the operating system can sort words differently. Indexes in that order would then miss rows, and admit duplicates.
test('no index is in the order of the operating system', async () => {
  const { rows } = await sql<{ place: string }>`
    select distinct c.relname || '.' || pg_get_indexdef(i.indexrelid, o.place::integer, true) as place
      from pg_index i
      join pg_class c on c.oid = i.indrelid
      cross join unnest(i.indcollation) with ordinality as o (id, place)
      join pg_collation l on l.oid = o.id
     where c.relnamespace = 'public'::regnamespace and l.collname = 'default'`.execute(harness.db)
  expect(rows.map(({ place }) => place)).toEqual([])
})

test('every table has a primary key, by which a copy of it can be kept up to date', async () => {
  const { rows } = await sql<{ name: string }>`
    select c.relname as name from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
       and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)`.execute(harness.db)
  expect(rows).toEqual([])
})

test('a table that is spread over nodes has a partner in every row and in every key', async () => {
  const spread = Object.entries(tablePlaces).flatMap(([table, place]) =>
    place === 'distributed' ? snakeCase(table) : [],
  )
  const { rows } = await sql<{ name: string }>`
    select t.name from unnest(${spread}::text[]) as t (name)
     where not exists (
             select from pg_attribute
              where attrelid = t.name::regclass and attname = 'partner_id' and attnotnull)
        or exists (
             select from pg_index i
              where i.indrelid = t.name::regclass and i.indisunique
                and not exists (select from pg_attribute
                                 where attrelid = i.indrelid and attname = 'partner_id' and attnum = any(i.indkey)))`.execute(
    harness.db,
  )
  expect(rows).toEqual([])
})

test('a row that is spread over nodes refers only to rows of its partner, to tables that every node has, and to books of banks', async () => {
  const placed = Object.entries(tablePlaces).map(([table, place]) => ({ name: snakeCase(table), place }))
  const { rows } = await sql<{ key: string }>`
    with place as (select * from json_to_recordset(${JSON.stringify(placed)}) as p (name text, place text))
    select conname as key
      from pg_constraint k
      join place a on k.conrelid = a.name::regclass
      join place b on k.confrelid = b.name::regclass
     where k.contype = 'f' and (a.place = 'distributed' and b.place = 'local' or a.place = 'reference' and b.place <> 'reference'
            or a.place = 'distributed' and b.place = 'distributed' and pg_get_constraintdef(k.oid) not like 'FOREIGN KEY (partner_id%')
     order by 1`.execute(harness.db)
  // `distribute` drops these: batches and exceptions are on the coordinator, where the program and `ledger verify` look.
  expect(rows.map(({ key }) => key)).toEqual(['payouts_batch_id_fkey', 'withdrawal_recoveries_exception_id_fkey'])
})
