import { randomBytes } from 'node:crypto'
import { statfsSync } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { freemem, tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { superuser } from '@midmonth/embedded-postgres'
import pino from 'pino'
import type { TestProject } from 'vitest/node'
import { connect } from '../../src/database/connect.ts'
import { names, startEmbeddedPostgres } from '../../src/database/embedded.ts'
import { migrate } from '../../src/database/migrate.ts'
import { ensureInstallationKey } from '../../src/sealing/installation-keys.ts'
import { citusUrl, createTemplateOnNodes, dropDistributed } from '../harness/citus.ts'
import { keySource } from '../harness/installation-key.ts'
import { createPostgres } from '../servers/postgres.ts'
import { skippedInWords } from './skipped-on-citus.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The suite's server and its roles: the app role, the owner of all databases, and a superuser; on Citus also its template. */
    postgres: { host: string; user: string; owner: string; superuser: string; nodesTemplate?: string }
  }
}

/** One PostgreSQL for the whole run, with a migrated template that each test file clones. */
export default async function setup(project: TestProject) {
  if (citusUrl !== undefined) {
    for (const line of skippedInWords) console.log(line)
    const { hostname: host, username: superuser } = new URL(citusUrl)
    const nodesTemplate = `test_template_${randomBytes(6).toString('hex')}`
    await createTemplateOnNodes(nodesTemplate)
    project.provide('postgres', { host, user: names.roles.app, owner: names.roles.owner, superuser, nodesTemplate })
    return () => dropDistributed(nodesTemplate)
  }
  const { host, user, owner, stop } = await startTestPostgres()
  project.provide('postgres', { host, user, owner, superuser })
  return stop
}

/** Starts a PostgreSQL with a migrated template. A test that stops or freezes the server needs its own. */
export async function startTestPostgres() {
  const folder = await folderForData()
  // Not mkdtemp: an unprivileged PostgreSQL could not access a folder with mode 0700.
  const dataDir = path.join(folder, `midmonth-test-${process.pid}-${randomBytes(6).toString('hex')}`)
  const postgres = await startServer(dataDir, {
    max_connections: '300',
    // Memory is for the databases in /dev/shm.
    shared_buffers: '256MB',
    // The server is neither replicated nor recovered, and a checkpoint would write out databases no longer in use.
    wal_level: 'minimal',
    max_wal_senders: '0',
    max_wal_size: folder === memory ? '2GB' : '8GB',
    checkpoint_timeout: '1h',
    // With a database per test file, autovacuum would start a worker several times a second.
    autovacuum: 'off',
  })
  const { host } = postgres
  const { app: user, owner } = names.roles
  const log = pino({ level: 'silent' })
  const server = connect({ host, user: superuser, database: 'postgres' }, { log })
  await server.pool.query(`create database template_midmonth owner ${owner}`)
  await server.db.destroy()
  const { db, pool } = connect({ host, user: owner, database: 'template_midmonth' }, { log })
  await migrate(db, pool, { name: user })
  await ensureInstallationKey(db, { source: keySource, now: new Date() })
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

/** Our PostgreSQL, or the one whose installation MIDMONTH_TEST_POSTGRES names, such as /usr/lib/postgresql/15. */
async function startServer(dataDir: string, settings: Record<string, string>) {
  const binaries = process.env.MIDMONTH_TEST_POSTGRES
  if (binaries === undefined) {
    const checkoutDir = fileURLToPath(new URL('../..', import.meta.url))
    const { connection, stop } = await startEmbeddedPostgres({ dataDir, checkoutDir, settings })
    return { host: connection.host, stop }
  }
  await mkdir(dataDir)
  const postgres = await createPostgres({ folder: dataDir, logs: dataDir, settings, binaries })
  await postgres.start()
  return postgres
}

const memory = '/dev/shm'

/**
 * Returns a folder in memory if there is room for the write-ahead log and two hundred databases, so that commits do not
 * wait for a disk. PostgreSQL keeps the settings of a durable server, which the service checks when it starts.
 */
async function folderForData(): Promise<string> {
  try {
    const { bavail, bsize } = statfsSync(memory)
    const bytesMin = 6 * 2 ** 30
    if (bavail * bsize < bytesMin || freemem() < bytesMin) return tmpdir()
  } catch {
    return tmpdir()
  }
  // The data of a killed run would take up memory until the machine restarts.
  for (const name of await readdir(memory)) {
    const pid = /^midmonth-test-([0-9]+)-/.exec(name)?.[1]
    if (pid !== undefined && !isRunning(Number(pid)))
      await rm(path.join(memory, name), { recursive: true, force: true })
  }
  return memory
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: the process belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
