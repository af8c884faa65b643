import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { superuser } from '@midmonth/embedded-postgres'
import pg from 'pg'
import { startEmbeddedPostgres } from '../../src/database/embedded.ts'
import { atEnd } from './cleanup.ts'
import { parentOf } from './processes.ts'

/** The PostgreSQL that everything is measured on. */
export type Server = {
  version: string
  /** The parent of all its processes; undefined if it is not on this machine. */
  postmasterPid: number | undefined
  /** The address of one of its databases. */
  urlOf(database: string): string
  /** Makes a database for this run, which is dropped at its end. @returns its address */
  create(database: string, options?: { template?: string }): Promise<string>
  drop(database: string): Promise<void>
}

/**
 * Starts a fresh PostgreSQL of the project's own, or connects to the one that BENCH_DATABASE_URL names.
 * @throws with a sentence when that one is on another machine
 */
export async function openServer(): Promise<Server> {
  const given = process.env.BENCH_DATABASE_URL
  const base = given === undefined ? await startFresh() : requireLoopback(given)
  const urlOf = (database: string) => {
    const url = new URL(base)
    url.pathname = `/${database}`
    return url.href
  }
  const { version, pid } = await withClient(base, async client => {
    const { rows } = await client.query<{ version: string; pid: number }>(
      `select current_setting('server_version') as version, pg_backend_pid() as pid`,
    )
    if (rows[0] === undefined) throw new Error('PostgreSQL does not say which it is')
    const parent = parentOf(rows[0].pid)
    return { version: rows[0].version, pid: parent?.name === 'postgres' ? parent.pid : undefined }
  })
  const made = new Set<string>()
  const server: Server = {
    version,
    postmasterPid: pid,
    urlOf,
    async create(database, { template } = {}) {
      // Copying files is faster than copying through the log, and the copying is not measured.
      const from = template === undefined ? '' : `template ${template} strategy file_copy`
      await withClient(base, client => client.query(`create database ${database} ${from}`))
      made.add(database)
      return urlOf(database)
    },
    async drop(database) {
      await withClient(base, client => client.query(`drop database ${database} with (force)`))
      made.delete(database)
    },
  }
  // The folder of a fresh server goes as a whole.
  if (given !== undefined) {
    atEnd(async () => {
      for (const database of made) await server.drop(database)
    })
  }
  return server
}

/** Does something over one connection, which may take as long as it takes. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  // A connection lost between queries must not end the run silently; the next query fails.
  client.on('error', () => undefined)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

async function startFresh(): Promise<string> {
  // Not mkdtemp: a folder that only its maker may enter is none that an unprivileged PostgreSQL can work in.
  const dataDir = path.join(tmpdir(), `midmonth-bench-${randomBytes(6).toString('hex')}`)
  atEnd(() => rm(dataDir, { recursive: true, force: true }))
  const starting = startEmbeddedPostgres({
    dataDir,
    checkoutDir: fileURLToPath(new URL('../..', import.meta.url)),
  })
  // An end that comes during the start waits for it: otherwise it would be written into the folder that is removed.
  atEnd(async () => (await starting).stop())
  const { host, port, database } = (await starting).connection
  // What fills tables quickly switches triggers off.
  return `postgres://${superuser}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`
}

function requireLoopback(url: string): string {
  const { hostname, searchParams } = new URL(url)
  const host = searchParams.get('host') ?? decodeURIComponent(hostname)
  if (/^(|\/.*|localhost|127\..*|\[::1\])$/.test(host)) return url
  throw new Error('BENCH_DATABASE_URL must name a PostgreSQL of this machine: the network would be what is measured')
}
