import { sql } from 'kysely'
import { type MigrationProvider, Migrator } from 'kysely/migration'
import pg from 'pg'
import type { Db } from './database.ts'
import { type AppRole, applyGrants } from './grants.ts'
import { compatibleWith, describeNewerSchema, knownMigrations, readMigration, readSchemaState } from './migrations.ts'
import { makePartitions } from './partitions.ts'

const migrations: MigrationProvider = {
  async getMigrations() {
    const names = await knownMigrations()
    return Object.fromEntries(
      names.map(name => [
        name,
        {
          async up(tx: Db) {
            const migration = await readMigration(name)
            // Building an index over years of rows may take long.
            await sql`set local statement_timeout = 0`.execute(tx)
            await sql.raw(migration).execute(tx)
            await declareCompatibility(tx, { name, migration })
          },
        },
      ]),
    )
  },
}

// Runs in the migration's transaction: a program that saw only one of the two would refuse to start for no reason.
async function declareCompatibility(tx: Db, { name, migration }: { name: string; migration: string }): Promise<void> {
  const declared = compatibleWith(migration)
  if (declared === undefined) return
  await sql`insert into schema_compatibility (migration, compatible_with) values (${name}, ${declared})`.execute(tx)
}

/**
 * Brings our schema and the job queue's up to date, and then the grants. Idempotent, and safe to run from several
 * processes at once, which take turns. A newer schema that this program can serve is left unchanged, grants included; so is an
 * up-to-date schema if the connected role does not own it.
 * @param db connected as the owner, like `pool`
 * @param app the role that the program logs in as, which gets the grants
 * @returns the names of the migrations that this call applied
 * @throws with a sentence for the operator if the role lacks rights, or the schema is too new for this program
 */
export async function migrate(db: Db, pool: pg.Pool, app: AppRole): Promise<string[]> {
  return await inTurn(pool, async client => {
    const state = await readSchemaState(db)
    const tooNew = await describeNewerSchema(state)
    if (tooNew !== undefined) throw new Error(tooNew)
    if (state.unknown.length > 0) return []
    const lacking = await describeLackingRights(client)
    if (lacking !== undefined) {
      if (state.pending.length === 0) return []
      throw new Error(lacking)
    }
    const { error, results = [] } = await new Migrator({ db, provider: migrations }).migrateToLatest()
    if (error) throw error
    // Loaded late: every command loads this module, and few migrate.
    const { runMigrations: migrateJobs } = await import('graphile-worker')
    await migrateJobs({ pgPool: pool })
    await applyGrants(client, app)
    await makePartitions(db)
    return results.filter(result => result.status === 'Success').map(result => result.migrationName)
  })
}

// The job queue's own migrations take no lock, and fail if two processes run them at once.
async function inTurn<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    // The process that holds the lock may take long.
    await client.query('set statement_timeout = 0')
    await client.query('set lock_timeout = 0')
    await client.query(`select pg_advisory_lock(hashtext('midmonth migrate'))`)
    return await work(client)
  } finally {
    // Closing the connection releases the lock in any case.
    client.release(true)
  }
}

/**
 * Names the rights that the connected role lacks for migrations, in a sentence with the statements that grant them.
 * @returns undefined if it lacks none
 */
async function describeLackingRights(client: pg.ClientBase): Promise<string | undefined> {
  const { rows } = await client.query<{
    role: string
    database: string
    mayCreateTables: boolean
    mayCreateSchemas: boolean
    otherOwners: string[]
  }>(
    `select current_user as role, current_database() as database,
            has_schema_privilege('public', 'create') as "mayCreateTables",
            to_regnamespace('graphile_worker') is not null
              or has_database_privilege(current_database(), 'create') as "mayCreateSchemas",
            array(select distinct relowner::regrole::text
                    from pg_class c join pg_namespace n on n.oid = c.relnamespace
                   where relkind in ('r', 'p') and not pg_has_role(relowner, 'usage')
                     and (nspname = 'graphile_worker'
                          or (nspname = 'public' and relname in ('kysely_migration', 'ledger_transfers')))) as "otherOwners"`,
  )
  const [found] = rows
  if (found === undefined) throw new Error('PostgreSQL returned no session details')
  const [role, database] = [pg.escapeIdentifier(found.role), pg.escapeIdentifier(found.database)]
  const lacking = `The role ${found.role} may not change the schema of the database ${found.database}`
  const [owner] = found.otherOwners
  if (owner !== undefined) {
    return (
      `${lacking}, which belongs to ${owner}: set DATABASE_OWNER_URL to an address that logs in as ${owner}; or, if ` +
      `${found.role} is to own it, have a superuser run in that database: reassign owned by ${owner} to ${role};`
    )
  }
  const remedies = [
    ...(found.mayCreateTables ? [] : [`grant create on schema public to ${role};`]),
    ...(found.mayCreateSchemas ? [] : [`grant create on database ${database} to ${role};`]),
  ]
  if (remedies.length === 0) return undefined
  return `${lacking}: set DATABASE_OWNER_URL to a role that owns it, or have its owner run in that database: ${remedies.join(' ')}`
}
