import { afterAll, expect, test, vi } from 'vitest'
import { midmonth, newDatabase, serve, tamper, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 60_000 })
afterAll(tidyUp)

const rehearsalOf = (address: string) => ['upgrade', '--rehearse', '--database-url', address, '--json']

test('an upgrade is rehearsed on the copy, not on the configured database', async () => {
  const [database, copy] = [await newDatabase({ migrated: false }), await newDatabase({ migrated: false })]
  expect(await midmonth(rehearsalOf(copy.DATABASE_OWNER_URL), database)).toMatchObject({ code: 0 })
  const tables = `select count(*)::integer as migrations from pg_class where relname = 'migrations' and relnamespace = 'public'::regnamespace`
  expect(await tamper(copy, tables)).toEqual([{ migrations: 1 }])
  expect(await tamper(database, tables)).toEqual([{ migrations: 0 }])
})

test('a database that processes use, or used until they were stopped, is not a copy to rehearse on', async () => {
  const database = await newDatabase()
  const service = await serve(database, { roles: { api: true, worker: false } })
  expect(await midmonth(rehearsalOf(database.DATABASE_OWNER_URL), database)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^midmonth: Processes of Midmonth use the database at --database-url/),
  })
  await service.stop()
  expect(await midmonth(rehearsalOf(database.DATABASE_OWNER_URL), database)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('so it is not a copy'),
  })
})
