import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { superuser } from '@midmonth/embedded-postgres'
import pg from 'pg'
import pino from 'pino'
import { Type } from 'typebox'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type Harness, startHarness } from '../../test/harness/harness.ts'
import { createPostgres, type Postgres } from '../../test/servers/postgres.ts'
import { named, operationsOn } from '../http/operation.ts'
import { registerOperations } from '../http/register.ts'
import { createServer } from '../http/server/create-server.ts'
import { connect, type Databases } from './connect.ts'
import { type Db, sql } from './database.ts'
import { readReplication } from './durability.ts'
import { Replica } from './replica.ts'

const log = pino({ level: 'silent' })

let folder: string
let servers: { primary: Postgres; standby: Postgres }
let primary: Databases
let standby: Databases

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'midmonth-replica-'))
  chmodSync(folder, 0o755)
  const create = async (name: string, settings: Record<string, string>) => {
    const own = folderOf(name)
    mkdirSync(own)
    return await createPostgres({ folder: own, logs: own, settings })
  }
  const first = await create('primary', { wal_level: 'logical' })
  const second = await create('standby', { primary_conninfo: `host=${first.host} user=${superuser}` })
  const [from, to] = ['primary', 'standby'].map(name => path.join(folderOf(name), 'postgres'))
  execFileSync('sh', [
    '-c',
    `rm -r "${to}" && cp -a "${from}" "${to}" && cp -p "${to}/PG_VERSION" "${to}/standby.signal"`,
  ])
  servers = { primary: first, standby: second }
  await first.start()
  await second.start()
  primary = connect(first.ownerUrl, { log, connectionsMax: 2 })
  standby = connect(second.ownerUrl, { log, connectionsMax: 2 })
  await sql`create table writes (number integer not null)`.execute(primary.db)
}, 60_000)
afterAll(async () => {
  await Promise.all([primary?.close(), standby?.close()])
  await Promise.all([servers?.primary.stop(), servers?.standby.stop()])
  rmSync(folder, { recursive: true })
})

// A server that stops looks for its name among all processes.
const folderOf = (name: string) => path.join(folder, `${path.basename(folder)}-${name}`)
const replicaOf = (replica: Db) => new Replica({ primary: primary.db, replica, log })
const write = (number: number) => sql`insert into writes values (${number})`.execute(primary.db)

async function latest(reader: Db): Promise<{ number: number; isReplica: boolean }> {
  const { rows } = await sql<{ number: number; isReplica: boolean }>`
    select max(number) as number, pg_is_in_recovery() as is_replica from writes`.execute(reader)
  return rows[0] ?? { number: 0, isReplica: false }
}

test('every read sees the write before it, and the replica takes part', async () => {
  const replica = replicaOf(standby.db)
  const sources = new Set<boolean>()
  for (let number = 1; number <= 50; number++) {
    await write(number)
    const found = await replica.read(latest)
    expect(found.number).toBe(number)
    sources.add(found.isReplica)
  }
  expect(sources).toContain(true)
})

test('while the replica is behind, the primary is read', async () => {
  const replica = replicaOf(standby.db)
  const administrator = new pg.Client({ host: servers.standby.host, user: superuser, database: 'midmonth' })
  await administrator.connect()
  try {
    await administrator.query('select pg_wal_replay_pause()')
    await write(1_000)
    expect(await replica.read(latest)).toEqual({ number: 1_000, isReplica: false })
    await administrator.query('select pg_wal_replay_resume()')
    await vi.waitFor(async () => expect(await replica.read(latest)).toEqual({ number: 1_000, isReplica: true }), 5_000)
  } finally {
    await administrator.end()
  }
})

test('a server that is not a standby is never read', async () => {
  expect(await replicaOf(standby.db).upToDate()).toBe(standby.db)
  const other = connect(servers.primary.ownerUrl, { log, connectionsMax: 1 })
  expect(await replicaOf(other.db).upToDate()).toBe(primary.db)
  await other.close()
})

test('a read that fails on the replica is repeated on the primary', async () => {
  const replica = replicaOf(standby.db)
  const reads: Db[] = []
  const found = await replica.read(async reader => {
    reads.push(reader)
    // Only the primary accepts it.
    await sql`delete from writes where number = 0`.execute(reader)
    return await latest(reader)
  })
  expect(reads).toEqual([standby.db, primary.db])
  expect(found.isReplica).toBe(false)
})

test('only an operation that may read the replica does', async () => {
  const harness: Harness = await startHarness()
  const app = createServer({ db: harness.db, log, now: harness.clock.now, mode: harness.mode, sealer: harness.sealer })
  const { operation } = operationsOn<{ db: Db }>()
  const declared = (route: 'GET /lagging' | 'GET /deciding', mayReadReplica?: true) =>
    operation({
      route,
      ...(mayReadReplica ? { mayReadReplica } : {}),
      isPublic: true,
      tag: 'Service',
      summary: 'Read',
      success: { description: 'Where it was read.', schema: Type.Object({ isReplica: Type.Boolean() }) },
      read: async reader => ({ body: { isReplica: (await latest(reader as Db)).isReplica } }),
    })
  const operations = named({ lagging: declared('GET /lagging', true), deciding: declared('GET /deciding') })
  registerOperations(app, { db: primary.db, replica: replicaOf(standby.db) }, operations)
  expect((await app.inject('/lagging')).json()).toEqual({ isReplica: true })
  expect((await app.inject('/deciding')).json()).toEqual({ isReplica: false })
  await app.close()
  await harness.stop()
})

test('the app role sees that a replica streams, and whether commits wait for one', async () => {
  const app = connect(servers.primary.url, { log, connectionsMax: 1 })
  const administrator = new pg.Client({ host: servers.primary.host, user: superuser, database: 'midmonth' })
  await administrator.connect()
  const setNames = async (names: string) => {
    await administrator.query(`alter system set synchronous_standby_names = '${names}'`)
    await administrator.query('select pg_reload_conf()')
    await vi.waitFor(async () => expect((await readReplication(app.db)).isSynchronous).toBe(names !== ''), 5_000)
  }
  try {
    expect(await readReplication(app.db)).toMatchObject({ isSynchronous: false, replicas: [{ state: null }] })
    await setNames('*')
    await setNames('')
  } finally {
    await administrator.end()
    await app.close()
  }
})

test('a logical subscriber and an archive of WAL are not replicas', async () => {
  const app = connect(servers.primary.url, { log, connectionsMax: 1 })
  const { host } = servers.primary
  const connection = { host, user: superuser, database: 'midmonth', replication: 'database' }
  const names = ['subscriber', 'barman_receive_wal']
  const others = names.map(name => new pg.Client({ ...connection, application_name: name }))
  try {
    for (const each of others) await each.connect()
    await others[0]?.query('CREATE_REPLICATION_SLOT subscriber TEMPORARY LOGICAL pgoutput')
    const { rows } = await sql`select application_name as name from pg_stat_replication`.execute(app.db)
    expect(rows.length).toBe(3)
    const { replicas } = await readReplication(app.db)
    expect(replicas.length).toBe(1)
    expect(names).not.toContain(replicas[0]?.name)
  } finally {
    for (const each of others) await each.end()
    await app.close()
  }
})

test('without its primary, the replica is not read; without its replica, the primary is', async () => {
  const gone = connect('postgres://x@127.0.0.1:1/x', { log, connectionsMax: 1 })
  const messages: string[] = []
  const heard = pino({ level: 'warn' }, { write: (line: string) => messages.push(JSON.parse(line).msg) })
  const replica = new Replica({ primary: gone.db, replica: standby.db, log: heard })
  await expect(replica.read(latest)).rejects.toThrow('ECONNREFUSED')
  expect(messages, 'the replica is not to blame').toEqual([])
  await gone.close()
  await servers.standby.stop()
  expect((await replicaOf(standby.db).read(latest)).isReplica).toBe(false)
})
