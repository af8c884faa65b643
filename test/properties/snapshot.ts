import pino from 'pino'
import { connect } from '../../src/database/connect.ts'
import type { Harness } from '../harness/harness.ts'

export type Snapshot = { restore(): Promise<void>; stop(): Promise<void> }

/** Remembers all rows of a harness's database, so that many runs can start from them. */
export async function takeSnapshot({ host, superuser, database }: Harness): Promise<Snapshot> {
  // The program may not delete from append-only tables.
  const connection = { host, user: superuser, database }
  const { pool, close } = connect(connection, { log: pino({ level: 'silent' }), connectionsMax: 1 })
  // Durability is tested elsewhere.
  await pool.query('set synchronous_commit = off')
  const { rows } = await pool.query<{ table: string; columns: string }>(
    `select quote_ident(table_name) as table, string_agg(quote_ident(column_name), ', ' order by ordinal_position) as columns
       from information_schema.columns join information_schema.tables using (table_schema, table_name)
      where table_schema = 'public' and table_type = 'BASE TABLE' and is_generated = 'NEVER'
        and table_name <> all('{installation,state_transitions,kysely_migration,kysely_migration_lock}')
      group by table_name`,
  )
  await pool.query('create schema snapshot')
  const restoration = rows.map(({ table }) => `delete from public.${table};`)
  for (const { table, columns } of rows) {
    const { rowCount } = await pool.query(`create table snapshot.${table} as select ${columns} from public.${table}`)
    if (rowCount === 0) continue
    restoration.push(`insert into public.${table} (${columns}) overriding system value table snapshot.${table};`)
  }
  let count = 0
  return {
    async restore() {
      // Without triggers and foreign keys.
      await pool.query(`begin; set local session_replication_role = replica; ${restoration.join(' ')} commit;`)
      if (++count % 50 === 0) await pool.query(`vacuum ${rows.map(({ table }) => `public.${table}`).join(', ')}`)
    },
    stop: close,
  }
}
