import type pg from 'pg'
import { snakeCase } from '../kernel/text.ts'
import { lanesOf, type Reader, sql } from './database.ts'
import { type TablePlace, tablePlaces } from './table-places.ts'

/** How many of the tables that belong on the nodes of a distributed PostgreSQL (Citus) are there. `partly`: `midmonth distribute` has not ended. */
export type Spread = 'not' | 'partly' | 'wholly'

export async function readSpread(db: Pick<pg.ClientBase, 'query'>): Promise<Spread> {
  const catalog = await db.query<{ exists: boolean }>(
    `select to_regclass('pg_catalog.pg_dist_partition') is not null as exists`,
  )
  if (catalog.rows[0]?.exists !== true) return 'not'
  const wanted = Object.entries(tablePlaces).flatMap(([table, place]) => (place === 'local' ? [] : [snakeCase(table)]))
  const { rows } = await db.query<{ count: number }>(
    `select count(*)::integer as count from pg_dist_partition where logicalrelid::text = any($1)`,
    [wanted],
  )
  const count = rows[0]?.count ?? 0
  return count === 0 ? 'not' : count === wanted.length ? 'wholly' : 'partly'
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
  const { rows: extension } = await sql`select from pg_extension where extname = 'citus'`.execute(db)
  if (lanesOf(db) === 'shared' || extension.length === 0) return undefined
  const nodes = await sql<{ node: string; count: number | null }>`
    select nodename || ':' || nodeport as node, case when success then result::integer end as count
      from run_command_on_all_nodes(${`select count(*) from pg_prepared_xacts
                                        where database = current_database() and prepared < now() - interval '${preparedMinutesMax} minutes'`})
      join pg_dist_node using (nodeid)
     order by 1`.execute(db)
  const tables = await sql<{ name: string; place: TablePlace }>`
    select logicalrelid::text as name, case partmethod when 'h' then 'distributed' else 'reference' end as place
      from pg_dist_partition`.execute(db)
  const placeOf = new Map(tables.rows.map(({ name, place }) => [name, place]))
  return {
    nodes: nodes.rows.length,
    unreachable: nodes.rows.flatMap(({ node, count }) => (count === null ? [node] : [])),
    misplaced: Object.entries(tablePlaces).flatMap(([table, place]) =>
      (placeOf.get(snakeCase(table)) ?? 'local') === place ? [] : [snakeCase(table)],
    ),
    prepared: nodes.rows.flatMap(({ node, count }) => (count === null || count === 0 ? [] : [{ node, count }])),
  }
}
