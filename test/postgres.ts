import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { superuser } from '@openwage/embedded-postgres'
import pino from 'pino'
import type { TestProject } from 'vitest/node'
import { connect } from '../src/database/connect.ts'
import { startEmbeddedPostgres } from '../src/database/embedded.ts'
import { migrate } from '../src/database/migrate.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The suite's server and its roles: the app role, the owner of all databases, and a superuser. */
    postgres: { host: string; user: string; owner: string; superuser: string }
  }
}

/** One PostgreSQL for the whole run, with a migrated template that each test file clones. */
export default async function setup(project: TestProject) {
  const { host, user, owner, stop } = await startTestPostgres()
  project.provide('postgres', { host, user, owner, superuser })
  return stop
}

/** Starts a PostgreSQL with a migrated template. A test that stops or freezes the server needs its own. */
export async function startTestPostgres() {
  // Not mkdtemp: an unprivileged PostgreSQL could not access a folder with mode 0700.
  const dataDir = path.join(tmpdir(), `openwage-test-${randomBytes(6).toString('hex')}`)
  const postgres = await startEmbeddedPostgres({
    dataDir,
    checkoutDir: fileURLToPath(new URL('..', import.meta.url)),
    settings: {
      max_connections: '300',
      // Nothing replicates this server or recovers it, and a checkpoint would write out databases that are done with.
      wal_level: 'minimal',
      max_wal_senders: '0',
      max_wal_size: '8GB',
      checkpoint_timeout: '1h',
      // With a database per test file, it would start a worker several times a second.
      autovacuum: 'off',
    },
  })
  const { host, user } = postgres.connection
  const owner = postgres.ownerConnection.user
  const log = pino({ level: 'silent' })
  const server = connect({ host, user: superuser, database: 'postgres' }, { log })
  await server.pool.query(`create database template_openwage owner ${owner}`)
  await server.db.destroy()
  const { db, pool } = connect({ host, user: owner, database: 'template_openwage' }, { log })
  await migrate(db, pool, { name: user })
  await db.destroy()
  return {
    host,
    user,
    owner,
    superuser,
    dataDir,
    async stop() {
      await postgres.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
