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

/** The PostgreSQL server that everything is measured on. */
export type Server = {
  version: string
  /** The parent of all PostgreSQL processes; undefined if the server is not on this machine. */
  postmasterPid: number | undefined
  /** Returns the address of a database of the server. */
  urlOf(database: string): string
  /** Creates a database that is dropped at the end of the run. @returns its address */
  create(database: string, options?: { template?: string }): Promise<string>
  drop(database: string): Promise<void>
}

/**
 * Starts the PostgreSQL that Midmonth ships, or connects to the server that BENCH_DATABASE_URL names.
 * @throws when the named server is on another machine
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
    if (rows[0] === undefined) throw new Error('PostgreSQL did not return its version')
    const parent = parentOf(rows[0].pid)
    return { version: rows[0].version, pid: parent?.name === 'postgres' ? parent.pid : undefined }
  })
  const created = new Set<string>()
  const server: Server = {
    version,
    postmasterPid: pid,
    urlOf,
    async create(database, { template } = {}) {
      // Copying files is faster than copying through the write-ahead log, and it is not measured.
      const from = template === undefined ? '' : `template ${template} strategy file_copy`
      await withClient(base, client => client.query(`create database ${database} ${from}`))
      created.add(database)
      return urlOf(database)
    },
    async drop(database) {
      await withClient(base, client => client.query(`drop database ${database} with (force)`))
      created.delete(database)
    },
  }
  // A fresh server is removed with its folder.
  if (given !== undefined) {
    atEnd(async () => {
      for (const database of created) await server.drop(database)
    })
  }
  return server
}

/**
 * Writes as much write-ahead log as the server keeps, so that it reuses segments, as a server does that has run for a day. A new
 * segment is first filled with zeros and synced, and every commit waits for that: 40 to 180 ms on a virtual disk.
 */
export async function fillLog(url: string): Promise<void> {
  await withClient(url, async client => {
    const { rows } = await client.query<{ messages: number }>(
      `select ceil(pg_size_bytes(current_setting('max_wal_size')) * 1.1 / 8e6)::integer as messages`,
    )
    for (let written = 0; written < (rows[0]?.messages ?? 0); written++)
      await client.query(`select pg_logical_emit_message(false, '', repeat('x', 8000000))`)
    // The second one recycles the segments before the first.
    await client.query('checkpoint')
    await client.query('checkpoint')
  })
}

/** Runs work over one connection, without a timeout. */
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
  // Not mkdtemp: an unprivileged PostgreSQL could not access a folder with mode 0700.
  const dataDir = path.join(tmpdir(), `midmonth-bench-${randomBytes(6).toString('hex')}`)
  atEnd(() => rm(dataDir, { recursive: true, force: true }))
  const starting = startEmbeddedPostgres({
    dataDir,
    checkoutDir: fileURLToPath(new URL('../..', import.meta.url)),
  })
  // If the run ends during the start, wait for the start: otherwise PostgreSQL would write into a removed folder.
  atEnd(async () => (await starting).stop())
  const { host, port, database } = (await starting).connection
  // Seeding switches triggers off, which only a superuser may do.
  return `postgres://${superuser}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`
}

function requireLoopback(url: string): string {
  const { hostname, searchParams } = new URL(url)
  const host = searchParams.get('host') ?? decodeURIComponent(hostname)
  if (/^(|\/.*|localhost|127\..*|\[::1\])$/.test(host)) return url
  throw new Error('BENCH_DATABASE_URL must name a PostgreSQL on this machine; otherwise the network would be measured')
}
