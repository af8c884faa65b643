import pg from 'pg'
import pino from 'pino'
import { connect } from '../../src/database/connect.ts'
import { distribute } from '../../src/database/distribute.ts'
import { names } from '../../src/database/embedded.ts'
import { migrate } from '../../src/database/migrate.ts'
import { ensureInstallationKey } from '../../src/sealing/installation-keys.ts'
import { keySource } from './installation-key.ts'

/** The address of a superuser at the coordinator, in a database that knows the nodes; undefined if tests run on one PostgreSQL. */
export const citusUrl: string | undefined = process.env.MIDMONTH_TEST_CITUS_URL || undefined

// Each node has as many shards as cores; a test needs only enough for partners to be apart.
const shards = 4

type Node = { host: string; port: number; isCoordinator: boolean }

/** Makes an empty database on every node, which the coordinator knows. */
export async function createOnNodes(url: string, database: string): Promise<void> {
  const { app, owner } = names.roles
  const nodes = await withClient({ connectionString: url }, async client => {
    await client.query('select pg_advisory_lock(1)')
    for (const role of [owner, app])
      await client.query(`do $$ begin create role ${role} login; exception when duplicate_object then null; end $$`)
    const rows = await readNodes(client)
    for (const node of rows)
      await onNode(node, url, new URL(url).pathname.slice(1), async admin => {
        await admin.query(`set citus.enable_create_database_propagation = off; `)
        await admin.query(`create database ${database} owner ${owner}`)
        await admin.query(`alter database ${database} set citus.allow_nested_distributed_execution = on`)
        // Only newer releases of PostgreSQL have this setting. Partners are moved by the plugin of Citus.
        await admin.query(`do $$ begin
          if current_setting('output_plugin_libraries', true) is not null then
            alter database ${database} set output_plugin_libraries = pgoutput, test_decoding, citus;
          end if; end $$`)
      })
    return rows
  })
  for (const node of nodes)
    await onNode(node, url, database, async admin => {
      await admin.query('create extension citus')
      // Tests change the schema and read rows in one transaction.
      await admin.query(`alter role ${owner} in database ${database} set citus.multi_shard_modify_mode = sequential`)
      await admin.query(`set citus.enable_ddl_propagation = off; grant create on schema public to ${owner}`)
    })
  const coordinator = nodes.find(({ isCoordinator }) => isCoordinator)
  if (coordinator === undefined) throw new Error('the coordinator is not among its nodes')
  await onNode(coordinator, url, database, async admin => {
    await admin.query('select citus_set_coordinator_host($1, $2)', [coordinator.host, coordinator.port])
    for (const { host, port, isCoordinator } of nodes)
      if (!isCoordinator) await admin.query('select citus_add_node($1, $2)', [host, port])
    await admin.query(`select citus_set_node_property($1, $2, 'shouldhaveshards', false)`, [
      coordinator.host,
      coordinator.port,
    ])
  })
}

/** Makes a migrated and distributed database on every node. */
export async function createDistributed(url: string, database: string): Promise<void> {
  const { app, owner } = names.roles
  await createOnNodes(url, database)
  const { db, pool } = connect(addressOf(url, { user: owner, database }), { log: pino({ level: 'silent' }) })
  try {
    await migrate(db, pool, { name: app })
    await ensureInstallationKey(db, { source: keySource, now: new Date() })
    await distribute(db, pool, { name: app }, { shards })
  } finally {
    await db.destroy()
  }
}

/** Removes a database from every node. Each occupies a background worker there. */
export async function dropDistributed(url: string, database: string): Promise<void> {
  const main = new URL(url).pathname.slice(1)
  const nodes = await withClient({ connectionString: url }, readNodes)
  for (const node of nodes)
    await onNode(node, url, main, async admin => {
      await admin.query('set citus.enable_create_database_propagation = off')
      await admin.query(`drop database ${database} with (force)`)
    })
}

async function readNodes(client: pg.Client): Promise<Node[]> {
  const { rows } = await client.query<Node>(
    `select nodename as host, nodeport as port, groupid = 0 as "isCoordinator" from pg_dist_node where noderole = 'primary'`,
  )
  return rows
}

function addressOf(url: string, { user, database }: { user: string; database: string }): string {
  const address = new URL(url)
  address.username = user
  address.pathname = `/${database}`
  return address.href
}

async function onNode(
  node: Node,
  url: string,
  database: string,
  work: (client: pg.Client) => Promise<void>,
): Promise<void> {
  const address = new URL(addressOf(url, { user: new URL(url).username, database }))
  address.hostname = node.host
  address.port = String(node.port)
  await withClient({ connectionString: address.href }, work)
}

async function withClient<T>(config: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(config)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
