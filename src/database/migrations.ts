import { readdir, readFile } from 'node:fs/promises'
import pg from 'pg'
import { type Reader, sql } from './database.ts'

const folder = new URL('../../migrations/', import.meta.url)

/** The migrations of this version of the program, in order. */
export async function knownMigrations(): Promise<string[]> {
  const files = await readdir(folder)
  return files
    .filter(file => file.endsWith('.sql'))
    .map(file => file.replace(/\.sql$/, ''))
    .sort()
}

export async function readMigration(name: string): Promise<string> {
  return await readFile(new URL(`${name}.sql`, folder), 'utf8')
}

/** The number of the newest migration that a program must know to serve the schema after this one; undefined if the file names none. */
export function compatibleWith(migration: string): string | undefined {
  return /^-- compatible-with: ([0-9]{4})$/m.exec(migration)?.[1]
}

/** The difference between a database's schema and this program. */
export type SchemaState = {
  pending: string[]
  /** Migrations of a newer program. `compatibleWith` is the newest migration that a program must know; null means this one. */
  unknown: { name: string; compatibleWith: string | null }[]
}

export async function readSchemaState(db: Reader): Promise<SchemaState> {
  const known = await knownMigrations()
  const applied = await appliedMigrations(db)
  const unknown = applied.filter(name => !known.includes(name))
  const declared = unknown.length === 0 ? new Map() : await declaredCompatibility(db)
  return {
    pending: known.filter(name => !applied.includes(name)),
    unknown: unknown.map(name => ({ name, compatibleWith: declared.get(name) ?? null })),
  }
}

/** Tells the operator why the schema is too new for this program; undefined if the program can serve the schema. */
export async function describeNewerSchema({ unknown }: SchemaState): Promise<string | undefined> {
  const newest = (await knownMigrations()).at(-1) ?? ''
  const tooNew = unknown.filter(each => each.compatibleWith === null || each.compatibleWith > newest.slice(0, 4))
  if (tooNew.length === 0) return undefined
  return (
    `The database was migrated by a newer version of Midmonth (${tooNew.map(({ name }) => name).join(', ')}), and this one ` +
    `knows migrations up to ${newest}: start the newer version`
  )
}

async function appliedMigrations(db: Reader): Promise<string[]> {
  try {
    const { rows } = await sql<{ name: string }>`select name from public.kysely_migration order by name`.execute(db)
    return rows.map(({ name }) => name)
  } catch (error) {
    // 42P01: the table does not exist, because nothing has been migrated yet.
    if (error instanceof pg.DatabaseError && error.code === '42P01') return []
    // 42501: insufficient privilege.
    if (error instanceof pg.DatabaseError && error.code === '42501') throw await withoutGrants(db, error)
    throw error
  }
}

async function withoutGrants(db: Reader, cause: Error): Promise<Error> {
  const { rows } = await sql<{ role: string; database: string }>`
    select current_user::text as role, current_database()::text as database`.execute(db)
  return new Error(
    `The role ${rows[0]?.role} may not read the tables of the database ${rows[0]?.database}: run midmonth migrate with ` +
      'DATABASE_OWNER_URL set to the owner of the database, which grants that role what it needs',
    { cause },
  )
}

async function declaredCompatibility(db: Reader): Promise<Map<string, string>> {
  const { rows } = await sql<{ migration: string; compatibleWith: string }>`
    select migration, compatible_with from schema_compatibility`.execute(db)
  return new Map(rows.map(row => [row.migration, row.compatibleWith]))
}
