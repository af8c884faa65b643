import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { reasonOf, snakeCase } from '../kernel/text.ts'
import type { Db } from './database.ts'
import { inTurn } from './migrate.ts'
import { misplacedIn, readPlaces } from './spread.ts'
import { anchor, tablePlaces } from './table-places.ts'

/** What a move does. Nodes are named by their address. */
export type PartnerMove = {
  partnerId: string
  name: string
  from: string
  to: string
  /** Rows of the partner, in all tables. */
  rows: bigint
  /** Size of the partner's shard, with the rows of the partners that share it. */
  bytes: bigint
  /** Other partners in the shard. They stay. */
  neighbours: number
  /** Whether other partners can be in the shard, so that the partner gets a separate one. */
  isShared: boolean
  /** False if the partner has a separate shard on the node already. */
  isNeeded: boolean
  /** Kinds and numbers of objects that moves have left, which are removed first. */
  leftovers: { kind: string; count: number }[]
}

// Any distributed table would do.
const table = `public.${anchor}`

type Shard = { id: bigint; hash: number; min: number; max: number; nodeId: number }

/**
 * Reads where a partner is, and what moving it to a node takes.
 * @param client a connection of the owner to the coordinator
 * @param wanted.to a node's host, or its host and port
 * @throws Error with a message for the operator if the partner cannot be moved there
 */
export async function planMove(
  client: pg.ClientBase,
  db: Db,
  wanted: { partnerId: string; to: string },
): Promise<PartnerMove> {
  const { name, shard, nodes, target } = await locate(client, db, wanted)
  return {
    partnerId: wanted.partnerId,
    name,
    from: nodes.find(({ id }) => id === shard.nodeId)?.address ?? 'an unknown node',
    to: target.address,
    ...(await sizesOf(client, wanted.partnerId, shard)),
    isShared: isShared(shard),
    isNeeded: !hasSeparateShardOn(target, shard),
    leftovers: await readLeftovers(client),
  }
}

/**
 * Moves a partner's shard to a node while the partner is served; or, if other partners can be in its shard, gives it a separate one
 * there. May be killed and run again: Citus changes its catalog in one transaction at the end.
 * @param wanted like `planMove`
 * @returns how many writes of the partner, which are tried all the time, succeeded, and the longest time between two of them
 * @throws Error like `planMove`, or if another move is running
 */
export async function movePartner(
  db: Db,
  pool: pg.Pool,
  wanted: { partnerId: string; to: string },
): Promise<MeasuredPause> {
  return await asOnlyMove(pool, async holder => {
    // Refuses a wrong argument before anything is ended.
    await locate(holder, db, wanted)
    await endKilledMove(holder)
    return await moveInTurn(db, pool, wanted)
  })
}

/**
 * Runs a move unless another one is running.
 *
 * The lock is held by an idle connection, which the server closes as soon as its process has ended. A session that is copying rows may
 * notice only later.
 */
async function asOnlyMove<T>(pool: pg.Pool, work: (holder: pg.PoolClient) => Promise<T>): Promise<T> {
  const holder = await pool.connect()
  try {
    const { rows } = await holder.query<{ isOnly: boolean }>(
      `select pg_try_advisory_lock(hashtext('midmonth partner move')) as "isOnly"`,
    )
    if (rows[0]?.isOnly !== true)
      throw new Error('Another move is running: wait until it has ended, and run this again')
    return await work(holder)
  } finally {
    holder.release(true)
  }
}

// Distinguishes our moves from those that an operator makes in psql.
const mark = '/* midmonth partner move */'

/** Ends the session that a killed move has left in the server. */
async function endKilledMove(client: pg.ClientBase): Promise<void> {
  await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and usename = current_user and state = 'active' and starts_with(query, $1)`,
    [mark],
  )
}

async function moveInTurn(db: Db, pool: pg.Pool, wanted: { partnerId: string; to: string }): Promise<MeasuredPause> {
  return await inTurn(pool, async client => {
    // A session that has lost its client would go on copying.
    await client.query('set statement_timeout = 0; set lock_timeout = 0; set client_connection_check_interval = 1000')
    await client.query('set client_min_messages = warning')
    await client.query('call citus_cleanup_orphaned_resources()')
    const { shard, nodes, target } = await locate(client, db, wanted)
    if (hasSeparateShardOn(target, shard)) return { writes: 0, longestPauseMs: 0 }
    return await measurePause(pool, wanted.partnerId, async () => {
      if (isShared(shard)) await moveOut(client, shard, { target, by: nodeToSplitOn(shard, { target, nodes }) })
      else await moveShard(client, shard, target.id)
    })
  })
}

/** Finds the partner's shard and the node that it is wanted on. */
async function locate(
  client: pg.ClientBase,
  db: Db,
  { partnerId, to }: { partnerId: string; to: string },
): Promise<{ name: string; shard: Shard; nodes: Node[]; target: Node }> {
  const places = await readPlaces(db)
  if (places.size === 0)
    throw new Error('This database is one PostgreSQL, where all partners are; only Citus has nodes')
  if (misplacedIn(places).length > 0) throw new Error('Not every table is at its place: run midmonth distribute --yes')
  await requireOwner(client)
  const name = await nameOf(client, partnerId)
  const shard = await shardOf(client, partnerId)
  const nodes = await readNodes(client)
  const target = nodeNamed(to, nodes)
  await requireLogicalWal(client)
  return { name, shard, nodes, target }
}

function isShared({ min, max }: Shard): boolean {
  return min !== max
}

function hasSeparateShardOn(node: Node, shard: Shard): boolean {
  return shard.nodeId === node.id && !isShared(shard)
}

async function requireOwner(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ role: string; owner: string; isOwner: boolean }>(
    `select current_user as role, relowner::regrole::text as owner, pg_has_role(relowner, 'usage') as "isOwner"
       from pg_class where oid = $1::regclass`,
    [table],
  )
  const [{ role, owner, isOwner } = { role: '', owner: '', isOwner: false }] = rows
  if (!isOwner)
    throw new Error(
      `Citus moves shards only for the role that owns the tables: set DATABASE_OWNER_URL to the address with the role ${owner} instead of ${role}`,
    )
}

async function nameOf(client: pg.ClientBase, partnerId: string): Promise<string> {
  const { rows } = await client.query<{ name: string }>('select name from public.partners where id = $1', [partnerId])
  if (rows[0] === undefined)
    throw new Error(`There is no partner ${partnerId}; run midmonth partner list to see the ids`)
  return rows[0].name
}

async function shardOf(client: pg.ClientBase, partnerId: string): Promise<Shard> {
  const { rows } = await client.query<Shard>(
    `select s.shardid as id, h.hash, shardminvalue::integer as min, shardmaxvalue::integer as max, nodeid as "nodeId"
       from worker_hash($2::text) h (hash)
       join pg_dist_shard s on h.hash between shardminvalue::integer and shardmaxvalue::integer
       join pg_dist_placement p using (shardid)
       join pg_dist_node n on n.groupid = p.groupid and noderole = 'primary'
      where logicalrelid = $1::regclass`,
    [table, partnerId],
  )
  if (rows[0] === undefined) throw new Error('The shard of the partner is on no node')
  return rows[0]
}

type Node = { id: number; host: string; address: string; isActive: boolean; takesShards: boolean }

async function readNodes(client: pg.ClientBase): Promise<Node[]> {
  const { rows } = await client.query<Node>(
    `select nodeid as id, nodename as host, nodename || ':' || nodeport as address, isactive as "isActive",
            shouldhaveshards as "takesShards"
       from pg_dist_node where noderole = 'primary' order by 2, nodeport`,
  )
  return rows
}

function nodeNamed(name: string, nodes: Node[]): Node {
  const [node, ...others] = nodes.filter(({ host, address }) => name === address || name === host)
  const choices = () => nodes.flatMap(({ address, takesShards }) => (takesShards ? [address] : [])).join(', ')
  if (node === undefined) throw new Error(`There is no node ${name}; use one of ${choices()}`)
  if (others.length > 0) throw new Error(`Several nodes are at ${name}; use one of ${choices()}`)
  if (!node.isActive) throw new Error(`The node ${node.address} is disabled; run select citus_activate_node(…) first`)
  if (!node.takesShards) throw new Error(`The node ${node.address} takes no shards; use one of ${choices()}`)
  return node
}

async function requireLogicalWal(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ node: string }>(
    `select nodename || ':' || nodeport as node
       from run_command_on_all_nodes('show wal_level') join pg_dist_node using (nodeid)
      where result <> 'logical' order by 1`,
  )
  if (rows.length > 0)
    throw new Error(
      `wal_level must be logical, since rows are copied by logical replication: set it in postgresql.conf of ${rows.map(({ node }) => node).join(' and ')}, and restart`,
    )
}

async function sizesOf(
  client: pg.ClientBase,
  partnerId: string,
  { min, max }: Shard,
): Promise<{ rows: bigint; bytes: bigint; neighbours: number }> {
  const tables = Object.entries(tablePlaces).flatMap(([table, place]) =>
    place === 'distributed' ? [snakeCase(table)] : [],
  )
  const counts = tables.map(table => `select count(*) as count from public.${table} where partner_id = $1`)
  const counted = await client.query<{ rows: bigint }>(
    `select sum(count)::bigint as rows from (${counts.join(' union all ')}) t`,
    [partnerId],
  )
  const sized = await client.query<{ bytes: bigint }>(
    `select coalesce(sum(shard_size), 0)::bigint as bytes from citus_shards join pg_dist_shard using (shardid)
      where citus_table_type = 'distributed' and shardminvalue = $1::integer::text`,
    [min],
  )
  const near = await client.query<{ neighbours: number }>(
    `select count(*)::integer as neighbours from public.partners
      where id <> $1 and worker_hash(id::text) between $2::integer and $3::integer`,
    [partnerId, min, max],
  )
  return {
    rows: counted.rows[0]?.rows ?? 0n,
    bytes: sized.rows[0]?.bytes ?? 0n,
    neighbours: near.rows[0]?.neighbours ?? 0,
  }
}

async function readLeftovers(client: pg.ClientBase): Promise<PartnerMove['leftovers']> {
  const { rows } = await client.query<{ kind: string; count: number }>(
    `select case object_type when 1 then 'shard' when 2 then 'subscription' when 3 then 'replication slot'
                             when 4 then 'publication' when 5 then 'role' else 'database' end as kind,
            count(*)::integer as count
       from pg_dist_cleanup group by object_type order by object_type`,
  )
  return rows
}

/**
 * The node on which a shard is divided: not its own. Citus 13.2 did not replicate updates to parts that stay on their node, probably since
 * these get their primary keys too late.
 */
function nodeToSplitOn({ nodeId }: Shard, { target, nodes }: { target: Node; nodes: Node[] }): Node {
  const other = [target, ...nodes].find(({ id, isActive, takesShards }) => id !== nodeId && isActive && takesShards)
  if (other === undefined) throw new Error('A shard is divided by way of another node, and no other node takes shards')
  return other
}

/** Divides a shard into that of one partner, which goes to the target, and those of the hashes below and above, which come back. */
async function moveOut(client: pg.ClientBase, shard: Shard, { target, by }: { target: Node; by: Node }): Promise<void> {
  await split(client, shard, by)
  const { rows } = await client.query<Shard>(
    `select shardid as id, shardminvalue::integer as min, shardmaxvalue::integer as max, $3::integer as hash, $4::integer as "nodeId"
       from pg_dist_shard
      where logicalrelid = $5::regclass and shardminvalue::integer >= $1 and shardmaxvalue::integer <= $2`,
    [shard.min, shard.max, shard.hash, by.id, table],
  )
  for (const part of rows) {
    const home = part.min === shard.hash && part.max === shard.hash ? target.id : shard.nodeId
    if (home !== by.id) await moveShard(client, part, home)
  }
}

// Naming a transfer mode needs a right to the schema citus. The default is logical replication, as every table has a primary key.
async function moveShard(client: pg.ClientBase, { id, nodeId }: Shard, to: number): Promise<void> {
  await client.query(`${mark} select citus_move_shard_placement($1, $2, $3)`, [id, nodeId, to])
}

async function split(client: pg.ClientBase, { id, hash, min, max }: Shard, by: Node): Promise<void> {
  const points = [...(hash > min ? [hash - 1] : []), ...(hash < max ? [hash] : [])]
  const nodes = Array(points.length + 1).fill(by.id)
  try {
    await client.query(`${mark} select citus_split_shard_by_split_points($1, $2::integer[]::text[], $3::integer[])`, [
      id,
      points,
      nodes,
    ])
  } catch (error) {
    // Only superusers can read the setting, so it is not checked before.
    if (!/may not be used as an output plugin/.test(reasonOf(error))) throw error
    throw new Error(
      `output_plugin_libraries must contain citus, which is how Citus splits a shard: run alter database … set output_plugin_libraries = pgoutput, test_decoding, citus as a superuser on every node`,
      { cause: error },
    )
  }
}

type MeasuredPause = { writes: number; longestPauseMs: number }

const probeEveryMs = 10

/** Writes to the partner's rows until the work is done: an update of none of them waits for whatever their other writes wait for. */
async function measurePause(pool: pg.Pool, partnerId: string, work: () => Promise<void>): Promise<MeasuredPause> {
  const write = () => pool.query(`update ${table} set name = name where partner_id = $1 and name = ''`, [partnerId])
  await write()
  let isDone = false
  let writes = 0
  let longestMs = 0
  let lastAt = performance.now()
  const note = () => {
    longestMs = Math.max(longestMs, performance.now() - lastAt)
  }
  const probing = (async () => {
    while (!isDone) {
      await pause(probeEveryMs)
      try {
        await write()
      } catch {
        // The pause goes on until a write succeeds.
        continue
      }
      writes += 1
      note()
      lastAt = performance.now()
    }
    note()
  })()
  try {
    await work()
  } finally {
    isDone = true
    await probing
  }
  return { writes, longestPauseMs: Math.ceil(longestMs) }
}
