import type pg from 'pg'

/**
 * Generates the TypeScript types of all tables from a migrated database, so that the schema is declared only in migrations.
 * A column with a check constraint that lists its values becomes a union of literals.
 */
export async function describeTables(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<Column>(`
    select c.relname as table, a.attname as column, format_type(a.atttypid, null) as type, a.attnotnull as required,
           a.atthasdef or a.attidentity <> '' as generated,
           (select array_agg(distinct value[1]) from pg_constraint k,
                   regexp_matches(pg_get_constraintdef(k.oid), '''([^'']+)''::text', 'g') value
             where k.conrelid = c.oid and k.contype = 'c' and k.conkey = array[a.attnum]
               and pg_get_constraintdef(k.oid) like 'CHECK ((' || a.attname || ' = ANY (ARRAY[%') as values
      from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and a.attnum > 0 and not a.attisdropped
     order by c.relname, a.attnum`)
  const tables = Object.entries(Object.groupBy(rows, row => row.table))
  return [
    '// Generated from the migrations by `npm run generate`. Do not edit.',
    "import type { Generated } from 'kysely'",
    "import type { Currency } from '../kernel/money.ts'",
    '',
    'export type DB = {',
    ...tables.flatMap(([table, columns = []]) => [`  ${camel(table)}: {`, ...columns.map(lineOf), '  }']),
    '}',
    '',
  ].join('\n')
}

type Column = {
  table: string
  column: string
  type: string
  required: boolean
  generated: boolean
  values: string[] | null
}

const types: Record<string, string> = {
  bigint: 'bigint',
  boolean: 'boolean',
  bytea: 'Buffer',
  currency: 'Currency',
  date: 'string',
  id: 'string',
  integer: 'number',
  jsonb: 'unknown',
  text: 'string',
  'text[]': 'string[]',
  'timestamp with time zone': 'Date',
  uuid: 'string',
  xid8: 'string',
}

function lineOf(column: Column): string {
  const [name, type] = [camel(column.column), typeOf(column)]
  const line = `    ${name}: ${type}`
  // As the formatter breaks a long union.
  return line.length <= 120 ? line : `    ${name}:\n${type.replaceAll(/(?:^|(?: \| ))/g, '\n      | ').slice(1)}`
}

function typeOf({ table, column, type, required, generated, values }: Column): string {
  const plain = values === null ? types[type] : values.map(value => `'${value}'`).join(' | ')
  if (plain === undefined)
    throw new Error(`${table}.${column}: no TypeScript type for ${type}; add it to scripts/tables.ts`)
  // `unknown` already includes null.
  const full = required || plain === 'unknown' ? plain : `${plain} | null`
  return generated ? `Generated<${full}>` : full
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
