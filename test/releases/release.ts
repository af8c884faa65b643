import assert from 'node:assert/strict'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { superuser } from '@midmonth/embedded-postgres'
import pg from 'pg'
import pino from 'pino'
import { connect } from '../../src/database/connect.ts'
import { startEmbeddedPostgres } from '../../src/database/embedded.ts'
import { migrate } from '../../src/database/migrate.ts'
import { listMigrations, migrationsFolder, readMigration } from '../../src/database/migration-file.ts'
import { readReleases } from '../../src/database/releases.ts'
import { claimMode } from '../../src/partners/partners.ts'
import { seedDemo } from '../../src/sandbox/demo.ts'
import { ensureInstallationKey, openSealer } from '../../src/sealing/installation-keys.ts'
import { keySource } from '../harness/installation-key.ts'
import { dumpRows } from './fixture.ts'

// Freezes the migrations of a release: `node test/releases/release.ts v0.1.0` writes their checksums, with which a test compares the files from
// then on, and the rows of the demo, from which later versions are tested. Commit both with the changelog's heading, and tag the commit.

const checkout = new URL('../..', import.meta.url)
const [version = ''] = process.argv.slice(2)
assert.match(version, /^v\d+\.\d+\.\d+$/, 'Name the version, like v0.1.0')
const changelog = await readFile(new URL('CHANGELOG.md', checkout), 'utf8')
assert(changelog.includes(`\n## ${version}`), `CHANGELOG.md has no heading "## ${version}": rename "## Unreleased"`)
const releases = readReleases()
assert(!releases.some(each => each.version === version), `${version} is in migrations/releases.json already`)

const released = releases.flatMap(({ migrations }) => Object.keys(migrations))
const added = listMigrations().filter(name => !released.includes(name))
releases.push({ version, migrations: Object.fromEntries(added.map(name => [name, readMigration(name).checksum])) })
await writeFile(new URL(`test/releases/${version}.rows.gz`, checkout), gzipSync(await rowsOfDemo()))
await writeFile(path.join(migrationsFolder, 'releases.json'), `${JSON.stringify(releases, null, 2)}\n`)
console.log(`${version}: ${added.length} migrations frozen. Commit, and tag the commit ${version}.`)

async function rowsOfDemo(): Promise<string> {
  const dataDir = path.join(tmpdir(), `midmonth-release-${process.pid}`)
  const postgres = await startEmbeddedPostgres({ dataDir, checkoutDir: fileURLToPath(checkout) })
  const { host, port, user, database } = postgres.connection
  const log = pino({ level: 'warn' })
  const owner = connect(postgres.ownerConnection, { log })
  const app = connect(postgres.connection, { log })
  const client = new pg.Client({ host, port, user: superuser, database })
  try {
    const now = new Date()
    await migrate(owner.db, owner.pool, { name: user })
    await ensureInstallationKey(owner.db, { source: keySource, now })
    await openSealer(app.db, keySource)
    await app.db.transaction().execute(tx => claimMode(tx, { mode: 'sandbox', now }))
    await seedDemo(app.db, now)
    await client.connect()
    return await dumpRows(client)
  } finally {
    await client.end()
    await app.close()
    await owner.close()
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
