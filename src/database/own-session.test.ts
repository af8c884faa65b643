import pg from 'pg'
import pino from 'pino'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { readSettings } from '../config.ts'
import { openDatabase, prepare } from '../open-database.ts'
import { requireOwnSessions } from './own-session.ts'
import { startPooler } from './pooler.fixture.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.stop())

test('sessions of PostgreSQL itself belong to one connection each, and have time-outs', async () => {
  await requireOwnSessions(harness.pool)
})

test('a pooler that shares sessions between connections is refused at start', async () => {
  const pooler = await startPooler(`${harness.host}/.s.PGSQL.5432`, harness)
  onTestFinished(() => pooler.stop())
  const settings = readSettings({
    DATABASE_URL: `postgres://${harness.user}@127.0.0.1:${pooler.port}/${harness.database}`,
  })
  await expect(openDatabase(settings, pino({ level: 'silent' }))).rejects.toThrow(
    'Cannot use the database at DATABASE_URL: a pooler shares sessions between connections, so time-outs and prepared statements are lost; set pool_mode = session',
  )
})

test('a pooler that shares sessions is also refused for migrations', async () => {
  const pooler = await startPooler(`${harness.host}/.s.PGSQL.5432`, harness)
  onTestFinished(() => pooler.stop())
  const settings = readSettings({
    ...harness.settings,
    DATABASE_OWNER_URL: `postgres://${harness.owner}@127.0.0.1:${pooler.port}/${harness.database}`,
  })
  const log = pino({ level: 'silent' })
  const database = await openDatabase(settings, log)
  onTestFinished(() => database.close())
  await expect(prepare(database, { mayMigrate: true, log })).rejects.toThrow('a pooler shares sessions')
})

test('a start whose second connection is refused fails, and leaves no connection open', async () => {
  const administrator = new pg.Client({ host: harness.host, user: harness.superuser, database: harness.database })
  await administrator.connect()
  const role = `${harness.database}_once`
  await administrator.query(`create role ${role} login connection limit 1`)
  try {
    const settings = readSettings({
      DATABASE_URL: `postgres://${role}@/${harness.database}?host=${encodeURIComponent(harness.host)}`,
    })
    await expect(openDatabase(settings, pino({ level: 'silent' }))).rejects.toThrow(
      `Cannot use the database at DATABASE_URL: too many connections for role "${role}"`,
    )
    const sessions = () => administrator.query('select 1 from pg_stat_activity where usename = $1', [role])
    await vi.waitFor(async () => expect((await sessions()).rows).toEqual([]))
  } finally {
    await administrator.query(`drop role ${role}`)
    await administrator.end()
  }
})
