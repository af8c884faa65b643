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
export async function createOnNodes(database: string): Promise<void> {
  const { app, owner } = names.roles
  const nodes = await withClient({ connectionString: mainUrl().href }, async client => {
    await client.query('select pg_advisory_lock(1)')
    for (const role of [owner, app])
      await client.query(`do $$ begin create role ${role} login; exception when duplicate_object then null; end $$`)
    return await readNodes(client)
  })
  await onEachNode(admin => createDatabase(admin, { database, template: 'template1' }))
  for (const node of nodes)
    await onNode(node, database, async admin => {
      await admin.query('create extension citus')
      await admin.query(`set citus.enable_ddl_propagation = off; grant create on schema public to ${owner}`)
    })
  const coordinator = nodes.find(({ isCoordinator }) => isCoordinator)
  if (coordinator === undefined) throw new Error('the coordinator is not among its nodes')
  await onNode(coordinator, database, async admin => {
    await admin.query('select citus_set_coordinator_host($1, $2)', [coordinator.host, coordinator.port])
    for (const { host, port, isCoordinator } of nodes)
      if (!isCoordinator) await admin.query('select citus_add_node($1, $2)', [host, port])
    await admin.query(`select citus_set_node_property($1, $2, 'shouldhaveshards', false)`, [
      coordinator.host,
      coordinator.port,
    ])
  })
}

/** The address at which a role finds a database on the coordinator. */
export function addressAtCoordinator(role: 'app' | 'owner', database: string): string {
  const address = mainUrl()
  address.username = names.roles[role]
  address.pathname = `/${database}`
  return address.href
}

/** Makes a migrated and distributed database on every node, which takes ten seconds, and closes it, so that it can be copied. */
export async function createTemplateOnNodes(template: string): Promise<void> {
  const { app } = names.roles
  await createOnNodes(template)
  const { db, pool } = connect(addressAtCoordinator('owner', template), { log: pino({ level: 'silent' }) })
  try {
    await migrate(db, pool, { name: app })
    await ensureInstallationKey(db, { source: keySource, now: new Date() })
    await distribute(db, pool, { name: app }, { shards })
  } finally {
    await db.destroy()
  }
  await onEachNode(admin => close(admin, template))
}

/** Copies a closed database to a new one on every node. Nothing that Citus keeps in a database names it. */
export async function cloneOnNodes(of: { database: string; template: string }): Promise<void> {
  await onEachNode(admin => createDatabase(admin, of))
}

/** Copies a database that the program no longer uses. */
export async function copyOnNodes({ from, to }: { from: string; to: string }): Promise<void> {
  await onEachNode(async admin => {
    await close(admin, from)
    await createDatabase(admin, { database: to, template: from })
    await admin.query(`alter database ${from} allow_connections true`)
  })
}

/** Ends all connections to a database, so that it can be copied. Citus has a background worker in each. */
async function close(admin: pg.Client, database: string): Promise<void> {
  await admin.query(`alter database ${database} allow_connections false`)
  await admin.query('select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1', [database])
}

/** Removes a database from every node. Each occupies a background worker there. */
export async function dropDistributed(database: string): Promise<void> {
  await onEachNode(admin => admin.query(`drop database ${database} with (force)`))
}

async function createDatabase(
  admin: pg.Client,
  { database, template }: { database: string; template: string },
): Promise<void> {
  const { owner } = names.roles
  // Only one session at a time can copy a template, and test files run concurrently.
  await admin.query('select pg_advisory_lock(2)')
  await admin.query(`create database ${database} template ${template} strategy file_copy owner ${owner}`)
  await admin.query(`alter database ${database} set citus.allow_nested_distributed_execution = on`)
  // Tests change the schema and read rows in one transaction.
  await admin.query(`alter role ${owner} in database ${database} set citus.multi_shard_modify_mode = sequential`)
  // Only newer releases of PostgreSQL have this setting. Partners are moved by the plugin of Citus.
  await admin.query(`do $$ begin
    if current_setting('output_plugin_libraries', true) is not null then
      alter database ${database} set output_plugin_libraries = pgoutput, test_decoding, citus;
    end if; end $$`)
}

/** Connects to the main database of each node, whose statements then stay on that node. */
async function onEachNode(work: (admin: pg.Client) => Promise<unknown>): Promise<void> {
  const main = mainUrl()
  const nodes = await withClient({ connectionString: main.href }, readNodes)
  await Promise.all(
    nodes.map(node =>
      onNode(node, main.pathname.slice(1), async admin => {
        await admin.query('set citus.enable_create_database_propagation = off; set citus.enable_ddl_propagation = off')
        await work(admin)
      }),
    ),
  )
}

async function readNodes(client: pg.Client): Promise<Node[]> {
  const { rows } = await client.query<Node>(
    `select nodename as host, nodeport as port, groupid = 0 as "isCoordinator" from pg_dist_node where noderole = 'primary'`,
  )
  return rows
}

async function onNode(node: Node, database: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const address = mainUrl()
  address.hostname = node.host
  address.port = String(node.port)
  address.pathname = `/${database}`
  await withClient({ connectionString: address.href }, work)
}

function mainUrl(): URL {
  if (citusUrl === undefined) throw new Error('MIDMONTH_TEST_CITUS_URL is not set')
  return new URL(citusUrl)
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
