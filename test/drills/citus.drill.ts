import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { superuser } from '@midmonth/embedded-postgres'
import pg from 'pg'
import { names } from '../../src/database/embedded.ts'
import type { Partner, RequestRecord } from '../crash/clients.ts'
import { endCycle } from '../crash/partners.ts'
import { keepRunning, runCommand } from '../crash/program.ts'
import { randomOf } from '../crash/random.ts'
import { startReceiver } from '../crash/receiver.ts'
import { findingsInWords, type Scene, settle, startClients } from '../crash/scene.ts'
import { until } from '../crash/until.ts'
import { createPostgres, type Postgres } from '../servers/postgres.ts'
import { Skipped } from './drill.ts'

export const title = 'on Citus, partners are moved while they pay, and the loss of a node is a 503 and loses nothing'

const rounds = 1
const steadyMs = 4_000
const outageMs = 6_000

// One for each server, all with the same port.
const addresses = ['127.77.0.10', '127.77.0.11', '127.77.0.12']

type Node = Postgres & { address: string }
type Home = { node: Node; partner: Partner }

export async function run(say: (line: string) => void): Promise<void> {
  const binaries = binariesWithCitus()
  if (binaries === undefined) throw new Skipped('the drill needs a PostgreSQL with Citus in /usr/lib/postgresql')
  const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-citus-'))
  const logs = path.join(folder, 'logs')
  mkdirSync(logs)
  chmodSync(folder, 0o755)
  const servers: Node[] = []
  try {
    for (const address of addresses) servers.push(await startServer(address, { folder, binaries }))
    const [coordinator, ...nodes] = servers
    if (coordinator === undefined) throw new Error('There is no coordinator')
    await joinNodes(coordinator, nodes)
    const owner = { DATABASE_OWNER_URL: coordinator.ownerUrl }
    await runCommand(coordinator.url, ['migrate'], owner)
    await runCommand(coordinator.url, ['distribute', '--yes', '--shards', '8'], owner)
    await loseNodes({ coordinator, nodes, logs, say })
  } finally {
    for (const server of servers) await server.stop()
  }
  rmSync(folder, { recursive: true })
}

async function loseNodes({
  coordinator,
  nodes,
  logs,
  say,
}: {
  coordinator: Node
  nodes: Node[]
  logs: string
  say: (line: string) => void
}): Promise<void> {
  const processes = (['API', 'worker'] as const).map(role =>
    keepRunning(role, role, { databaseUrl: coordinator.url, logs }),
  )
  const receiver = await startReceiver(randomOf(1, 'receiver'))
  const log: RequestRecord[] = []
  const scene = { databaseUrl: coordinator.url, logs, seed: 1, processes, receiver, log }
  try {
    const { partners, end } = await startClients(scene)
    try {
      const homes = nodes.flatMap((node, index) => partners.slice(index, index + 1).map(partner => ({ node, partner })))
      for (const home of homes) await move(home, { coordinator, say })
      for (let round = 1; round <= rounds; round++) for (const { node } of homes) await lose(node, { homes, log, say })
      for (const partner of partners) await endCycle(coordinator.url, partner)
    } finally {
      await end()
    }
    await requireNothingLost(scene, say)
  } finally {
    writeFileSync(path.join(logs, 'clients.jsonl'), log.map(record => `${JSON.stringify(record)}\n`).join(''))
    await Promise.all(processes.map(each => each.stop()))
    await receiver.stop()
  }
}

async function move(
  { node, partner: { partnerId } }: Home,
  { coordinator, say }: { coordinator: Node; say: (line: string) => void },
): Promise<void> {
  const args = ['partner', 'move', partnerId, '--to', node.address, '--yes', '--json']
  const moved = JSON.parse(await runCommand(coordinator.url, args, { DATABASE_OWNER_URL: coordinator.ownerUrl }))
  say(`moved from ${moved.from} to ${moved.to} in ${moved.seconds} s; longest pause ${moved.longestPauseMs} ms`)
}

/**
 * Kills a node, and starts it again.
 * @throws if partners of the other node are not served meanwhile, or its own not afterwards
 */
async function lose(
  node: Node,
  { homes, log, say }: { homes: Home[]; log: RequestRecord[]; say: (line: string) => void },
): Promise<void> {
  const ownIds = homes.flatMap(home => (home.node === node ? [home.partner.partnerId] : []))
  const otherIds = homes.flatMap(home => (home.node === node ? [] : [home.partner.partnerId]))
  await sleep(steadyMs)
  const before = log.length
  await node.kill()
  await sleep(outageMs)
  const ofOthers = () => log.slice(before).filter(({ partnerId }) => otherIds.includes(partnerId))
  await until(
    () => (['pay run', 'intent', 'complete'] as const).every(action => sum(ofOthers(), action).acknowledged > 0),
    'pay runs, intents and completions of partners of the other node succeed',
  )
  const during = log.slice(before)
  const others = sum(ofOthers())
  const own = sum(during.filter(({ partnerId }) => ownIds.includes(partnerId)))
  await node.start()
  const restored = log.length
  await until(
    () => sum(log.slice(restored).filter(({ partnerId }) => ownIds.includes(partnerId))).acknowledged > 0,
    'partners of the node are served again',
  )
  say(
    `${node.address} killed: partners of the other node ${others.acknowledged} acknowledged and ${others.unavailable} times 503, ` +
      `its own ${own.acknowledged} and ${own.unavailable}; other server errors ${own.serverErrors + others.serverErrors}`,
  )
  if (others.unavailable > 0) throw new Error('The loss of a node was noticed by partners of the other node')
}

async function requireNothingLost(scene: Scene, say: (line: string) => void): Promise<void> {
  const findings = await settle(scene)
  const { counts, first } = findingsInWords(findings)
  const { serverErrors, acknowledged } = sum(scene.log)
  say(
    `${scene.log.length} requests, ${acknowledged} acknowledged, ${serverErrors} server errors: ` +
      counts.map(([kind, count]) => `${kind} ${count}`).join(', '),
  )
  if (first.length + serverErrors > 0 || acknowledged === 0)
    throw new Error(`The loss of a node was noticed: ${first.join('; ')}`)
}

function sum(all: readonly RequestRecord[], action?: RequestRecord['request']['action']) {
  const log = all.filter(({ request }) => action === undefined || request.action === action)
  const of = (count: 'unavailable' | 'serverErrors') => log.reduce((total, record) => total + record[count], 0)
  const acknowledged = log.filter(({ answers: [answer] }) => answer !== undefined && answer.status < 300).length
  return { unavailable: of('unavailable'), serverErrors: of('serverErrors'), acknowledged }
}

function binariesWithCitus(): string | undefined {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root) : []
  return versions.map(version => path.join(root, version)).find(each => existsSync(path.join(each, 'lib/citus.so')))
}

async function startServer(address: string, { folder, binaries }: { folder: string; binaries: string }): Promise<Node> {
  // The name of the folder is that of the server, which must be the only one on this machine.
  const own = path.join(folder, `${path.basename(folder)}-${address}`)
  mkdirSync(own, { mode: 0o755 })
  const settings = {
    listen_addresses: address,
    shared_preload_libraries: 'citus',
    wal_level: 'logical',
    max_prepared_transactions: '200',
    max_worker_processes: '32',
    // Where a server finds itself.
    'citus.local_hostname': address,
    'citus.enable_unsafe_triggers': 'on',
    'citus.propagate_set_commands': 'local',
    'citus.enable_local_reference_table_foreign_keys': 'off',
    'citus.allow_nested_distributed_execution': 'on',
  }
  const server = await createPostgres({ folder: own, logs: own, settings, binaries })
  await server.start()
  await asSuperuser(server, [
    'create extension citus',
    `set citus.enable_ddl_propagation = off; grant create on schema public to ${names.roles.owner}`,
    // Only newer releases of PostgreSQL have this setting.
    `set citus.enable_ddl_propagation = off;
     do $$ begin
       if current_setting('output_plugin_libraries', true) is not null then
         alter database ${names.database} set output_plugin_libraries = pgoutput, test_decoding, citus;
       end if; end $$`,
  ])
  return { ...server, address }
}

async function joinNodes(coordinator: Node, nodes: Node[]): Promise<void> {
  await asSuperuser(coordinator, [
    `select citus_set_coordinator_host('${coordinator.address}', 5432)`,
    ...nodes.map(({ address }) => `select citus_add_node('${address}', 5432)`),
    `select citus_set_node_property('${coordinator.address}', 5432, 'shouldhaveshards', false)`,
  ])
}

async function asSuperuser({ host }: Postgres, statements: string[]): Promise<void> {
  const client = new pg.Client({ host, user: superuser, database: names.database })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}
