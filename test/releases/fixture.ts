import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'

// The rows of a database as text, from which a later version of the program is tested: `table (columns)`, the rows as COPY writes them,
// and `\.`. Without the schema, which the migrations of the release make.

/** What migrating writes itself. */
const madeByMigrate = ['migrations', 'migration_steps']

/** @param client connected as a superuser */
export async function dumpRows(client: pg.Client): Promise<string> {
  const { rows: tables } = await client.query<{ name: string; columns: string; key: string }>(
    `select c.relname as name,
            (select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
              where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns,
            (select string_agg(quote_ident(attname), ', ' order by array_position(i.indkey::int2[], attnum)) from pg_attribute
              where attrelid = c.oid and attnum = any(i.indkey)) as key
       from pg_class c join pg_index i on i.indrelid = c.oid and i.indisprimary
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> all($1)
      order by 1`,
    [madeByMigrate],
  )
  const parts: string[] = []
  for (const { name, columns, key } of tables) {
    const rows = await text(client.query(copyTo(`copy (select ${columns} from ${name} order by ${key}) to stdout`)))
    if (rows !== '') parts.push(`${name} (${columns})\n${rows}\\.\n`)
  }
  return parts.join('\n')
}

/** Replaces all rows of a migrated database. @param client connected as a superuser */
export async function loadRows(client: pg.Client, dump: string): Promise<void> {
  await client.query('begin; set local session_replication_role = replica')
  const tables = dump.split(/^\\\.\n\n?/m).filter(part => part !== '')
  for (const part of tables) {
    const [head = ''] = part.split('\n')
    const [name = ''] = head.split(' ')
    await client.query(`delete from ${name}`)
    await pipeline(Readable.from([part.slice(head.length + 1)]), client.query(copyFrom(`copy ${head} from stdin`)))
  }
  await client.query(
    `select setval(pg_get_serial_sequence(c.oid::regclass::text, attname), 1000000)
       from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and attidentity <> ''`,
  )
  await client.query('commit')
}
