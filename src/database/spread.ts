import type pg from 'pg'

/** Whether the tables of this database are spread over the nodes of a distributed PostgreSQL (Citus). */
export async function isSpread(client: Pick<pg.ClientBase, 'query'>): Promise<boolean> {
  const found = await client.query<{ hasCatalog: boolean }>(
    `select to_regclass('pg_catalog.pg_dist_partition') is not null as "hasCatalog"`,
  )
  if (found.rows[0]?.hasCatalog !== true) return false
  const { rowCount } = await client.query(
    `select from pg_dist_partition where logicalrelid = to_regclass('public.partners')`,
  )
  return rowCount === 1
}
