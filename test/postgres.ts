import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import type { TestProject } from 'vitest/node'
import { connect } from '../src/database/connect.ts'
import { migrate } from '../src/database/migrate.ts'
import { startEmbeddedPostgres } from '../src/embedded/embedded.ts'
import { superuser } from '../src/embedded/roles.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The suite's server, and its roles: the program's own, the owner of all databases, and a superuser. */
    postgres: { host: string; user: string; owner: string; superuser: string }
  }
}

/** One PostgreSQL for the whole run, with a migrated template that each test file clones. */
export default async function setup(project: TestProject) {
  const { host, user, owner, stop } = await startTestPostgres()
  project.provide('postgres', { host, user, owner, superuser })
  return stop
}

/** A PostgreSQL with a migrated template; a test that stops or freezes the server needs one of its own. */
export async function startTestPostgres() {
  // Not mkdtemp: a folder that only its maker may enter is none that an unprivileged PostgreSQL can work in.
  const dataDir = path.join(tmpdir(), `openwage-test-${randomBytes(6).toString('hex')}`)
  const postgres = await startEmbeddedPostgres({
    dataDir,
    checkoutDir: fileURLToPath(new URL('..', import.meta.url)),
    settings: { max_connections: '300' },
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
