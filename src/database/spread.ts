import { snakeCase } from '../kernel/text.ts'
import { lanesOf, type Reader, sql } from './database.ts'
import { type TablePlace, tablePlaces } from './table-places.ts'

/** Where tables are on a distributed PostgreSQL, by name; those that are not named are on the coordinator. */
type Places = ReadonlyMap<string, TablePlace>

/** Reads which tables of the program are on the nodes of a distributed PostgreSQL (Citus). None on one PostgreSQL. */
export async function readPlaces(db: Reader): Promise<Places> {
  const { rows: catalog } = await sql<{ exists: boolean }>`
    select to_regclass('pg_catalog.pg_dist_partition') is not null as exists`.execute(db)
  if (catalog[0]?.exists !== true) return new Map()
  const { rows } = await sql<{ name: string; place: TablePlace }>`
    select logicalrelid::text as name, case partmethod when 'h' then 'distributed' else 'reference' end as place
      from pg_dist_partition where logicalrelid::text = any(${Object.keys(tablePlaces).map(snakeCase)}::text[])`.execute(
    db,
  )
  return new Map(rows.map(({ name, place }) => [name, place]))
}

/** Whether the tables are spread over the nodes of a distributed PostgreSQL. Lanes do not tell: one PostgreSQL can have a lane per partner too. */
export async function isSpread(db: Reader): Promise<boolean> {
  return (await readPlaces(db)).size > 0
}

/** The tables that are not where `midmonth distribute` puts them. */
export function misplacedIn(places: Places): string[] {
  return Object.entries(tablePlaces).flatMap(([table, place]) =>
    (places.get(snakeCase(table)) ?? 'local') === place ? [] : [snakeCase(table)],
  )
}

/** The nodes behind a distributed database. Nodes are named by their address. */
export type Cluster = {
  nodes: number
  /** Nodes that do not answer the coordinator. */
  unreachable: string[]
  /** Tables that are not where `midmonth distribute` puts them, such as those of a migration since. */
  misplaced: string[]
  /** Transactions on nodes that were prepared minutes ago and neither committed nor rolled back; they hold locks. */
  prepared: { node: string; count: number }[]
}

// The coordinator itself ends what a lost connection left, once a minute.
const preparedMinutesMax = 5

/** Reads the state of the nodes; undefined on one PostgreSQL. */
export async function readCluster(db: Reader): Promise<Cluster | undefined> {
  // Tests give batches a lane per partner on one PostgreSQL too.
  const places = lanesOf(db) === 'shared' ? new Map() : await readPlaces(db)
  if (places.size === 0) return undefined
  const nodes = await sql<{ node: string; count: number | null }>`
    select nodename || ':' || nodeport as node, case when success then result::integer end as count
      from run_command_on_all_nodes(${`select count(*) from pg_prepared_xacts
                                        where database = current_database() and prepared < now() - interval '${preparedMinutesMax} minutes'`})
      join pg_dist_node using (nodeid)
     order by 1`.execute(db)
  return {
    nodes: nodes.rows.length,
    unreachable: nodes.rows.flatMap(({ node, count }) => (count === null ? [node] : [])),
    misplaced: misplacedIn(places),
    prepared: nodes.rows.flatMap(({ node, count }) => (count === null || count === 0 ? [] : [{ node, count }])),
  }
}
