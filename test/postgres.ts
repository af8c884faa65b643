import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import type { TestProject } from 'vitest/node'
import { connect } from '../src/db.ts'
import { startEmbeddedPostgres } from '../src/embedded/embedded.ts'
import { migrate } from '../src/migrate.ts'

declare module 'vitest' {
  interface ProvidedContext {
    postgres: { host: string; user: string }
  }
}

/** One PostgreSQL for the whole run, with a migrated template that each test file clones. */
export default async function setup(project: TestProject) {
  const { host, user, stop } = await startTestPostgres()
  project.provide('postgres', { host, user })
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
  const log = pino({ level: 'silent' })
  const server = connect({ host, user, database: 'postgres' }, { log })
  await server.pool.query('create database template_openwage')
  await server.db.destroy()
  const { db, pool } = connect({ host, user, database: 'template_openwage' }, { log })
  await migrate(db, pool)
  await db.destroy()
  return {
    host,
    user,
    dataDir,
    async stop() {
      await postgres.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}
