import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { until } from '../../test/crash/until.ts'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { connect, type Databases } from './connect.ts'
import { sql } from './database.ts'
import { type Migrating, migrate } from './migrate.ts'
import { listMigrations, migrationsFolder, numberOf } from './migration-file.ts'
import { type StepReport, stepLimits } from './migration-steps.ts'
import { readSchemaState } from './migrations.ts'

// The migrations of each kind that the drill runs on a filled database under load.
const kinds = fileURLToPath(new URL('../../test/drills/upgrade/migrations/', import.meta.url))

// Migrations of the tests have numbers that ours never reach.
const newest = listMigrations().at(-1) ?? ''

const folders: string[] = []
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true })
})

/** A program with more migrations than ours: those of each kind, or the given ones. */
function folderWith(files: { [name: string]: string } | 'kinds'): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-migrations-'))
  folders.push(folder)
  cpSync(migrationsFolder, folder, { recursive: true })
  if (files === 'kinds') cpSync(kinds, folder, { recursive: true })
  else for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, `${name}.sql`), text)
  return folder
}

let harness: Harness
let owner: Databases
beforeEach(async () => {
  harness = await startHarness()
  owner = connectAs(harness.owner)
})
afterEach(async () => {
  await owner.close()
  await harness.stop()
})

/** Connects as a program that knows all migrations of a test. */
function connectAs(user: string): Databases {
  const { host, database } = harness
  const databases = connect({ host, user, database }, { log: pino({ level: 'silent' }), connectionsMax: 4 })
  databases.pool.on('connect', client => void client.query(`set application_name = 'midmonth 9999'`))
  return databases
}

/** Tests wait milliseconds where production waits seconds. */
const limits = { ...stepLimits, lockMs: [20], pausesPerLockMs: 1, pausePerChunk: 0 }

function migrateWith(folder: string, options: Migrating = {}, { db, pool } = owner) {
  return migrate(db, pool, { name: harness.user }, { folder, limits, ...options })
}

const stateOf = (folder: string) => readSchemaState(owner.db, { folder })

async function rowsOf<Row>(text: string): Promise<Row[]> {
  return (await sql.raw<Row>(text).execute(owner.db)).rows
}

/** Adds members, and so as many events. */
async function addMembers(count: number): Promise<void> {
  for (let added = 0; added < count; added++) await harness.addMember()
}

/** Everything that the migrations of each kind change. */
const schemaOf = () =>
  rowsOf(`
    select c.relname, c.relkind, pg_get_expr(c.relpartbound, c.oid) as bounds,
           (select json_agg(attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attnotnull order by attname)
              from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped) as columns,
           (select json_agg(pg_get_indexdef(indexrelid) || ' ' || indisvalid order by 1::text, pg_get_indexdef(indexrelid))
              from pg_index where indrelid = c.oid) as indexes,
           (select json_agg(conname || pg_get_constraintdef(oid) order by conname) from pg_constraint where conrelid = c.oid) as constraints,
           (select json_agg(pg_get_triggerdef(oid) order by tgname) from pg_trigger where tgrelid = c.oid) as triggers,
           c.relacl::text
      from pg_class c
     where c.relname ~ '^(events|request_log)' and c.relkind in ('r', 'p') order by 1`)

test('the previous version serves while the migrations of the next run, and is refused after the last steps', async () => {
  await addMembers(3)
  const folder = folderWith('kinds')
  const { applied, toContract } = await migrateWith(folder)
  expect(applied).toEqual([
    '8002_event_subject',
    '8003_event_subject_number',
    '8004_one_event_per_subject',
    '8005_request_log_by_month',
  ])
  expect(toContract).toEqual(['8002_event_subject', '8003_event_subject_number', '8005_request_log_by_month'])
  expect(await stateOf(folder)).toMatchObject({ pending: [], unknown: [], toContract })

  // The harness is a program that knows none of them.
  await addMembers(2)
  await harness.flushRequestLog()
  expect((await harness.call('GET', '/readyz', { key: null })).status).toBe(200)
  expect(await rowsOf('select subject, subject_number from events group by 1, 2 order by 2')).toEqual([
    { subject: 'member', subjectNumber: 1 },
    { subject: 'pay_cycle', subjectNumber: 4 },
  ])
  expect(await rowsOf('select count(*)::integer from request_log')).toEqual([{ count: 5 }])

  await expect(migrateWith(folder, { contracts: true })).rejects.toThrow(
    `8002_event_subject cannot be migrated further while programs run that know migrations only up to ${numberOf(newest)} (`,
  )
  await harness.stop()
  // As PgBouncer names it with application_name_add_host.
  const behindPooler = await owner.pool.connect()
  await behindPooler.query(`set application_name = 'midmonth 0001 - 10.0.0.5:41234'`)
  await expect(migrateWith(folder, { contracts: true })).rejects.toThrow('only up to 0001 (1 connections)')
  behindPooler.release(true)
  expect((await migrateWith(folder, { contracts: true })).contracted).toEqual(toContract)
  expect(await readSchemaState(owner.db)).toMatchObject({
    unknown: [{ compatibleWith: null }, { compatibleWith: null }, {}, {}],
  })
  expect(await migrateWith(folder, { contracts: true })).toEqual({ applied: [], contracted: [], toContract: [] })
})

test('migrating that is interrupted after any step goes on with the next, and ends with the same schema', async () => {
  await addMembers(3)
  const folder = folderWith('kinds')
  // The others have the same ways of steps.
  rmSync(path.join(folder, '8003_event_subject_number.sql'))
  rmSync(path.join(folder, '8004_one_event_per_subject.sql'))
  await harness.stop()
  await migrateWith(folder, { contracts: true })
  const expected = await schemaOf()

  await owner.close()
  harness = await startHarness()
  owner = connectAs(harness.owner)
  await addMembers(3)
  await harness.stop()
  const done: string[] = []
  for (let interruptions = 0; ; interruptions++) {
    assert(interruptions < 50)
    const onStep = ({ migration, step }: StepReport) => {
      done.push(`${migration} ${step.number}`)
      throw new Error('interrupted')
    }
    const isDone = await migrateWith(folder, { contracts: true, onStep }).then(
      () => true,
      () => false,
    )
    if (isDone) break
  }
  expect(done.length).toBe(new Set(done).size)
  expect(done.length).toBeGreaterThan(10)
  expect(await schemaOf()).toEqual(expected)
})

describe('a step', () => {
  const addColumn =
    '-- Adds a column.\n-- compatible-with: 0001\n\n-- step: expand\nalter table events add column more text;\n'

  test('waits only shortly for a lock, and tries again', async () => {
    const folder = folderWith({ '8002_more': addColumn })
    const reader = await harness.pool.connect()
    await reader.query('begin; select from events limit 1')
    await expect(migrateWith(folder, { limits: { ...limits, attemptsMax: 2 } })).rejects.toThrow(
      '8002_more, step 1 (expand) failed: a table stayed locked; end the transactions that have been open for long, then run midmonth migrate again',
    )
    const reports: StepReport[] = []
    const running = migrateWith(folder, { onStep: report => reports.push(report) })
    await until(async () => {
      const waiting = await rowsOf('select from pg_locks where not granted and relation = $$events$$::regclass')
      return waiting.length > 0
    }, 'the migration waits for the lock')
    await harness.addMember()
    await until(async () => {
      const waiting = await rowsOf('select from pg_locks where not granted and relation = $$events$$::regclass')
      return waiting.length === 0
    }, 'the migration gives up')
    await reader.query('commit')
    reader.release()
    expect((await running).applied).toEqual(['8002_more'])
    expect(reports[0]?.lockTimeouts).toBeGreaterThan(0)
    expect(reports[0]?.locks).toContain('events: AccessExclusiveLock')
  })

  test('that holds its locks for too long is rolled back', async () => {
    const slow = `${addColumn}select pg_sleep(10);\n`
    await expect(
      migrateWith(folderWith({ '8002_more': slow }), { limits: { ...limits, atOnceMsMax: 100 } }),
    ).rejects.toThrow(
      '8002_more, step 1 (expand) failed: a statement that locks a table took too long and was rolled back',
    )
    expect(await rowsOf(`select from pg_attribute where attname = 'more'`)).toEqual([])
    expect(await stateOf(folderWith({ '8002_more': addColumn }))).toMatchObject({ pending: ['8002_more'] })
  })

  test('that back-fills goes on after the last chunk that it has finished', async () => {
    await addMembers(25)
    const folder = folderWith({
      '8002_more': `${addColumn}
-- step: expand, back-fill of members by partner_id, id
update members set event_count = event_count + 1 where CHUNK and refuse_some(id);
`,
    })
    const refusingFrom = (from: string) =>
      rowsOf(`create or replace function refuse_some(id text) returns boolean language plpgsql as $$
              begin if id > '${from}' then raise 'killed'; end if; return true; end $$`)
    const [member] = await rowsOf<{ id: string }>('select id from members order by partner_id, id offset 17 limit 1')
    await refusingFrom(member?.id ?? '')
    const inFives = { ...limits, chunkRows: { first: 5, min: 5, max: 5 } }
    await expect(migrateWith(folder, { limits: inFives })).rejects.toThrow('8002_more, step 2 (expand) failed: killed')
    const progress = 'select row_count::integer from migration_steps where migration = $$8002_more$$ and number = 2'
    expect(await rowsOf(progress)).toEqual([{ rowCount: 15 }])
    expect((await harness.call('GET', '/readyz', { key: null })).status).toBe(200)
    await refusingFrom('zzz')
    await migrateWith(folder, { limits: inFives })
    expect(await rowsOf(progress)).toEqual([{ rowCount: 25 }])
    // Inviting and activating a member are two events.
    expect(await rowsOf('select distinct event_count from members')).toEqual([{ eventCount: 3 }])
  })

  test('that builds an index concurrently builds it anew if it was interrupted, for two migrating processes too', async () => {
    await addMembers(3)
    const folder = folderWith({
      '8002_key': `-- Adds a key.
-- compatible-with: 0001

-- step: expand, concurrently
create unique index concurrently one_tier_per_member on members (partner_id, tier);
`,
    })
    await expect(migrateWith(folder)).rejects.toThrow('could not create unique index "one_tier_per_member"')
    const index = `select indisvalid as is_valid from pg_index where indexrelid = to_regclass('one_tier_per_member')`
    expect(await rowsOf(index)).toEqual([{ isValid: false }])
    await rowsOf('delete from member_keys; delete from members')
    const second = connectAs(harness.owner)
    const both = await Promise.all([migrateWith(folder), migrateWith(folder, {}, second)])
    await second.close()
    expect(both.map(({ applied }) => applied).toSorted()).toEqual([[], ['8002_key']])
    expect(await rowsOf(index)).toEqual([{ isValid: true }])
    // Killed after it was built, before that was recorded.
    await rowsOf('update migration_steps set finished_at = null where migration = $$8002_key$$')
    expect((await migrateWith(folder)).applied).toEqual(['8002_key'])
  })
})

test('a migration that no running program can serve is refused until they have stopped', async () => {
  const folder = folderWith({
    '8002_other_shapes': '-- Renames.\n\nalter table events rename column data to payload;\n',
  })
  await expect(migrateWith(folder)).rejects.toThrow(
    `8002_other_shapes cannot be migrated further while programs run that know migrations only up to ${numberOf(newest)} (`,
  )
  expect((await harness.call('GET', '/readyz', { key: null })).status).toBe(200)
  await harness.stop()
  expect((await migrateWith(folder)).applied).toEqual(['8002_other_shapes'])
})

test('a version is refused that must not be reached without the one before', async () => {
  const first = { '8002_more': '-- A table.\n-- compatible-with: 0001\n\ncreate table more ();\n' }
  const second = { ...first, '8003_less': '-- Drops it.\n-- compatible-with: 8002\n\ndrop table more;\n' }
  await expect(migrateWith(folderWith(second))).rejects.toThrow(
    `This version upgrades databases with migration 8002, and this one has migrations up to ${newest}: upgrade to the version with migration 8002 first`,
  )
  await harness.stop()
  await migrateWith(folderWith(first))
  expect((await migrateWith(folderWith(second))).applied).toEqual(['8003_less'])
})

test('the last steps of a migration come before a later one that needs them', async () => {
  const first = {
    '8002_more':
      '-- A table.\n-- compatible-with: 0001\n\n-- step: expand\ncreate table more ();\n\n-- step: contract\ndrop table more;\n',
  }
  const second = {
    ...first,
    '8003_anew': '-- The table.\n-- compatible-with: 8002\n\ncreate table more (id id primary key);\n',
  }
  await harness.stop()
  expect((await migrateWith(folderWith(first))).toContract).toEqual(['8002_more'])
  expect(await migrateWith(folderWith(second))).toMatchObject({ applied: ['8003_anew'], contracted: ['8002_more'] })
})

test('a migration that was changed after a database was migrated with it is refused', async () => {
  const before = '-- A table.\n-- compatible-with: 0001\n\ncreate table more ();\n'
  await migrateWith(folderWith({ '8002_more': before }))
  await expect(migrateWith(folderWith({ '8002_more': before.replace('()', '(id id)') }))).rejects.toThrow(
    'The migration 8002_more was changed after this database was migrated with it',
  )
})

test('rights that only older programs need are kept until the last steps', async () => {
  const folder = folderWith({
    '8002_more': '-- A step.\n-- compatible-with: 0001\n\n-- step: expand\nselect;\n\n-- step: contract\nselect;\n',
  })
  await rowsOf(`grant delete on ledger_transfers to ${harness.user}`)
  const mayDelete = () => rowsOf(`select has_table_privilege('${harness.user}', 'ledger_transfers', 'delete') as may`)
  await migrateWith(folder)
  expect(await mayDelete()).toEqual([{ may: true }])
  await harness.stop()
  await migrateWith(folder, { contracts: true })
  expect(await mayDelete()).toEqual([{ may: false }])
})
