import pg from 'pg'
import { type Reader, sql, type Tx } from './database.ts'
import { listMigrations, migrationsFolder, numberOf } from './migration-file.ts'

/** The difference between a database's schema and this program. */
export type SchemaState = {
  /** The newest migration of this program. */
  newest: string
  /** Migrations that have begun, in order. */
  begun: { name: string; checksum: string }[]
  /** Migrations that this program cannot run without. */
  pending: string[]
  /** Migrations whose last steps wait until no older program is running. */
  toContract: string[]
  /** Migrations of a newer program. `compatibleWith` is the newest migration that a program must know; null means this one. */
  unknown: { name: string; compatibleWith: string | null }[]
}

/** @param folder the migrations that the program knows */
export async function readSchemaState(db: Reader, { folder = migrationsFolder } = {}): Promise<SchemaState> {
  const known = listMigrations(folder)
  const begun = await readBegun(db)
  const toExpand = begun.filter(each => each.isExpanding).map(({ name }) => name)
  return {
    newest: known.at(-1) ?? '',
    begun: begun.map(({ name, checksum }) => ({ name, checksum })),
    pending: known.filter(name => toExpand.includes(name) || !begun.some(each => each.name === name)),
    toContract: begun.filter(each => each.isContracting && known.includes(each.name)).map(({ name }) => name),
    unknown: begun
      .filter(({ name }) => !known.includes(name))
      .map(({ name, compatibleWith }) => ({ name, compatibleWith })),
  }
}

/** Tells the operator why the schema is too new for this program; undefined if the program can serve the schema. */
export function describeNewerSchema({ unknown, newest }: SchemaState): string | undefined {
  const tooNew = unknown.filter(each => each.compatibleWith === null || each.compatibleWith > numberOf(newest))
  if (tooNew.length === 0) return undefined
  return (
    `The database was migrated by a newer version of Midmonth (${tooNew.map(({ name }) => name).join(', ')}), and this one ` +
    `knows migrations up to ${newest}: start the newer version`
  )
}

type Begun = {
  name: string
  checksum: string
  compatibleWith: string | null
  isExpanding: boolean
  isContracting: boolean
}

async function readBegun(db: Reader): Promise<Begun[]> {
  const isUnfinished = (phase: 'expand' | 'contract') =>
    sql`exists (select from public.migration_steps s where s.migration = m.name and s.phase = ${phase} and s.finished_at is null)`
  try {
    const { rows } = await sql<Begun>`
      select name, checksum, compatible_with, ${isUnfinished('expand')} as is_expanding, ${isUnfinished('contract')} as is_contracting
        from public.migrations m
       order by name`.execute(db)
    return rows
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

/** The name under which connections of this program are listed: migrating looks for programs that know too few migrations. */
export const programName = `midmonth ${numberOf(listMigrations().at(-1) ?? '')}`

/**
 * The connections of programs that are running and do not know a migration, by the newest that they know. Every process keeps a
 * connection, since it reads the installation's keys every few seconds.
 */
export async function listOlderPrograms(
  db: Reader,
  number: string,
): Promise<{ newest: string; connections: number }[]> {
  const { rows } = await sql<{ newest: string; connections: number }>`
    select known as newest, count(*)::integer as connections
      from (${connectionsOfPrograms}) c where known < ${number}
     group by 1
     order by 1`.execute(db)
  return rows
}

/** Refuses, from the commit on, the start of programs that do not know a migration, although its schema alone would suit them. */
export async function refuseOlderPrograms(tx: Tx, name: string): Promise<void> {
  await sql`update migrations set compatible_with = null where name = ${name}`.execute(tx)
}

/** How many connections of programs there are, with those of this one. */
export async function countConnections(db: Reader): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from (${connectionsOfPrograms}) c`.execute(db)
  return rows[0]?.count ?? 0
}

// PgBouncer may add the address of the client to the name.
const connectionsOfPrograms = sql`
  select substring(application_name from '^midmonth ([0-9]{4})( - .*)?$') as known
    from pg_stat_activity
   where datname = current_database() and application_name ~ '^midmonth [0-9]{4}( - .*)?$'`
