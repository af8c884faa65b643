import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { sql } from './database.ts'

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
    // Ids from callers, banks, partners, workers and Kysely. The resource id of an idempotency key is returned, never compared.
    'audit_log.request_id',
    'bank_files.message_id',
    'bank_records.message_id',
    'disclosures.request_id',
    'idempotency_keys.resource_id',
    'installation_audit_log.request_id',
    'kysely_migration_lock.id',
    'payout_batch_endings.message_id',
    'worker_heartbeats.worker_id',
  ])
})
