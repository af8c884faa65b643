import type pg from 'pg'
import { snakeCase } from '../kernel/text.ts'
import type { Db } from './database.ts'
import { readSchemaState } from './migrations.ts'
import { type DistributionStep, formsToReplace } from './node-forms.ts'
import { readPlaces } from './spread.ts'
import { anchor, type TablePlace, tablePlaces } from './table-places.ts'

/**
 * Reads what is left to do until every table is at its place; see `tablePlaces`. A run that was interrupted is continued by these steps.
 * @param client a connection of the owner to the coordinator
 * @throws Error with a line for each thing that is in the way and what to do about it
 */
export async function planDistribution(client: pg.ClientBase, db: Db): Promise<DistributionStep[]> {
  const obstacles = await findObstacles(client, db)
  if (obstacles.length > 0) throw new Error(obstacles.join('\n'))
  const places = await readPlaces(db)
  const keys = await foreignKeys(client)
  const placed = Object.entries(tablePlaces).map(([table, place]) => ({ table: snakeCase(table), place }))
  const placeOf = new Map(placed.map(({ table, place }) => [table, place]))
  const dropped = keys.filter(
    ({ table, target }) => (placeOf.get(table) === 'local') !== (placeOf.get(target) === 'local'),
  )
  const kept = keys.filter(key => !dropped.includes(key))
  const inOrder = (place: TablePlace) =>
    referredFirst(
      placed.filter(each => each.place === place).map(({ table }) => table),
      kept,
    ).filter(table => !places.has(table))
  return [
    ...(await formsToReplace(client)),
    ...dropped.map(({ name, table, target }) => ({
      change: `${table}: no foreign key to ${target}, which is ${placeOf.get(target) === 'local' ? 'on the coordinator' : 'a reference table'}`,
      statement: `alter table public.${table} drop constraint ${name}`,
    })),
    ...inOrder('reference').map(table => ({
      change: `${table}: a reference table, on every node`,
      statement: `select create_reference_table('public.${table}')`,
    })),
    ...inOrder('distributed').map(table => ({
      change: `${table}: distributed by partner`,
      statement: `select create_distributed_table('public.${table}', 'partner_id'${table === anchor ? '' : `, colocate_with => 'public.${anchor}'`})`,
    })),
  ]
}

/** The settings that the tables need on every node. */
const settings = [
  ['citus.enable_unsafe_triggers', 'on', 'triggers guard the books on each node'],
  ['citus.propagate_set_commands', 'local', 'the limits on waits hold on each node'],
  ['citus.enable_local_reference_table_foreign_keys', 'off', 'tables of the coordinator stay local'],
  ['citus.allow_nested_distributed_execution', 'on', 'triggers look at other tables of the partner'],
] as const

async function findObstacles(client: pg.ClientBase, db: Db): Promise<string[]> {
  const { rows } = await client.query<{ hasExtension: boolean; database: string }>(
    `select exists (select from pg_extension where extname = 'citus') as "hasExtension",
            quote_ident(current_database()) as database`,
  )
  const { hasExtension = false, database = '' } = rows[0] ?? {}
  if (!hasExtension)
    return [
      'This database has no extension citus: add citus to shared_preload_libraries on every node, restart them, and run "create extension citus" in this database on each, as a superuser',
    ]
  if ((await readSchemaState(db)).pending.length > 0) return ['The schema is not up to date: run midmonth migrate']
  const nodes = await client.query<{ isCoordinator: boolean; holdsShards: boolean }>(
    `select groupid = 0 as "isCoordinator", shouldhaveshards and isactive as "holdsShards" from pg_dist_node where noderole = 'primary'`,
  )
  const { rows: lacking } = await client.query<{ node: string; name: string }>(
    `select nodename || ':' || nodeport as node, name
       from unnest($1::text[], $2::text[]) as s (name, wanted)
      cross join lateral run_command_on_all_nodes(format('select current_setting(%L, true)', name)) found
       join pg_dist_node using (nodeid)
      where result is distinct from wanted order by name, node`,
    [settings.map(([name]) => name), settings.map(([, wanted]) => wanted)],
  )
  const detached = await client.query('select from detached_months limit 1')
  return [
    ...(detached.rows.length > 0
      ? ['Transfers are detached: attach their years first, with midmonth ledger attach']
      : []),
    ...(nodes.rows.some(({ isCoordinator }) => isCoordinator)
      ? []
      : ['The coordinator is not among the nodes: run select citus_set_coordinator_host(…) with its address']),
    ...(nodes.rows.some(({ holdsShards }) => holdsShards)
      ? []
      : ['No node takes shards: add one with select citus_add_node(…)']),
    ...settings.flatMap(([name, wanted, reason]) => {
      const at = lacking.filter(each => each.name === name).map(({ node }) => node)
      if (at.length === 0) return []
      return `${name} must be ${wanted}, since ${reason}: run alter database ${database} set ${name} = ${wanted} on ${at.join(' and ')}`
    }),
  ]
}

type ForeignKey = { name: string; table: string; target: string }

async function foreignKeys(client: pg.ClientBase): Promise<ForeignKey[]> {
  const { rows } = await client.query<ForeignKey>(
    `select quote_ident(conname) as name, a.relname as table, b.relname as target
       from pg_constraint k join pg_class a on a.oid = conrelid join pg_class b on b.oid = confrelid
      where contype = 'f' and conparentid = 0 and connamespace = 'public'::regnamespace order by 2, 1`,
  )
  return rows
}

/** Tables in an order in which each comes after those that it refers to. */
function referredFirst(tables: string[], keys: ForeignKey[]): string[] {
  const ordered: string[] = []
  const add = (table: string) => {
    if (ordered.includes(table)) return
    for (const key of keys)
      if (key.table === table && key.target !== table && tables.includes(key.target)) add(key.target)
    ordered.push(table)
  }
  add(anchor)
  for (const table of tables) add(table)
  return ordered.filter(table => tables.includes(table))
}

/** Takes each table to its place, without the grants. @throws Error like `planDistribution` */
export async function placeTables(
  client: pg.ClientBase,
  db: Db,
  onStep: (change: string) => void = () => undefined,
): Promise<DistributionStep[]> {
  const steps = await planDistribution(client, db)
  await client.query(
    'set statement_timeout = 0; set lock_timeout = 0; set client_min_messages = warning; set citus.multi_shard_modify_mode = sequential',
  )
  for (const { change, statement } of steps) {
    // One statement each: Citus distributes no table in a longer transaction.
    await client.query(statement)
    onStep(change)
  }
  return steps
}
