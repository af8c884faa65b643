import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { superuser } from '@midmonth/embedded-postgres'
import pg from 'pg'
import pino from 'pino'
import { afterAll, expect, test, vi } from 'vitest'
import { connect } from '../../src/database/connect.ts'
import { migrate } from '../../src/database/migrate.ts'
import { migrationsFolder } from '../../src/database/migration-file.ts'
import { readReleases } from '../../src/database/releases.ts'
import { dumpRows, loadRows } from '../releases/fixture.ts'
import { midmonth, newDatabase, serve, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })
afterAll(tidyUp)

type Addresses = Awaited<ReturnType<typeof newDatabase>>

async function asSuperuser<T>({ DATABASE_URL }: Addresses, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: DATABASE_URL.replace(/(?<=:\/\/)\w+/, superuser) })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** The program works on the demo, whose books are right. */
async function expectDemo(database: Addresses): Promise<void> {
  expect(await midmonth(['ledger', 'verify', '--all'], database)).toMatchObject({ code: 0 })
  const service = await serve(database)
  expect((await fetch(`${service.address}/readyz`)).status).toBe(200)
  await service.stop()
}

test('the rows of the demo are the same after they were dumped and loaded', async () => {
  const [database, copy] = [await newDatabase({ hasDemo: true }), await newDatabase()]
  const dump = await asSuperuser(database, dumpRows)
  expect(dump).toContain('withdrawals (partner_id, id, ')
  await asSuperuser(copy, client => loadRows(client, dump))
  expect(await asSuperuser(copy, dumpRows)).toBe(dump)
  await expectDemo(copy)
})

const releases = readReleases()
test.skipIf(releases.length === 0).each(releases)(
  'the demo of $version is upgraded to this version',
  async ({ version }) => {
    const database = await newDatabase({ migrated: false })
    const names = releases
      .slice(0, 1 + releases.findIndex(each => each.version === version))
      .flatMap(({ migrations }) => Object.keys(migrations))
    const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-release-'))
    for (const name of names) copyFileSync(path.join(migrationsFolder, `${name}.sql`), path.join(folder, `${name}.sql`))
    // As if the owner were the program’s role: this version has rights to tables that the release lacks.
    const { user = assert.fail() } = new pg.Client(database.DATABASE_OWNER_URL)
    const { db, pool, close } = connect(database.DATABASE_OWNER_URL, {
      log: pino({ level: 'silent' }),
      connectionsMax: 3,
    })
    await migrate(db, pool, { name: user }, { folder })
    await close()
    rmSync(folder, { recursive: true })
    const file = fileURLToPath(new URL(`../releases/${version}.rows.gz`, import.meta.url))
    await asSuperuser(database, client => loadRows(client, gunzipSync(readFileSync(file)).toString()))
    expect(await midmonth(['migrate', '--contract'], database)).toMatchObject({ code: 0 })
    await expectDemo(database)
  },
)
