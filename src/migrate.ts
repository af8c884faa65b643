import { readdir, readFile } from 'node:fs/promises'
import { runMigrations as migrateJobs } from 'graphile-worker'
import { sql } from 'kysely'
import { type MigrationProvider, Migrator } from 'kysely/migration'
import type pg from 'pg'
import type { Db } from './db.ts'

const folder = new URL('../migrations/', import.meta.url)

const migrations: MigrationProvider = {
  async getMigrations() {
    const files = (await readdir(folder)).filter(file => file.endsWith('.sql')).sort()
    return Object.fromEntries(
      files.map(file => [
        file.replace(/\.sql$/, ''),
        {
          async up(tx: Db) {
            // An index over years of rows takes as long as it takes.
            await sql`set local statement_timeout = 0`.execute(tx)
            await sql.raw(await readFile(new URL(file, folder), 'utf8')).execute(tx)
          },
        },
      ]),
    )
  },
}

function migrator(db: Db): Migrator {
  return new Migrator({ db, provider: migrations })
}

/**
 * Brings the schema up to date, ours and the job queue's. Safe to run from several processes at once (they take turns)
 * and again (nothing is done twice).
 * @returns the names of the migrations that were applied just now
 */
export async function migrate(db: Db, pool: pg.Pool): Promise<string[]> {
  return await inTurn(pool, async () => {
    const { error, results = [] } = await migrator(db).migrateToLatest()
    if (error) throw error
    await migrateJobs({ pgPool: pool })
    return results.filter(result => result.status === 'Success').map(result => result.migrationName)
  })
}

// The job queue's own migrations do not take turns, and two of them at once fail.
async function inTurn<T>(pool: pg.Pool, work: () => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    // However long another process takes.
    await client.query('set statement_timeout = 0')
    await client.query('set lock_timeout = 0')
    await client.query(`select pg_advisory_lock(hashtext('openwage migrate'))`)
    return await work()
  } finally {
    // Closing the connection lets go of the lock, whatever has happened to it.
    client.release(true)
  }
}

/** The migrations that this version of the program has and the database has not. */
export async function pendingMigrations(db: Db): Promise<string[]> {
  const all = await migrator(db).getMigrations()
  return all.filter(migration => migration.executedAt === undefined).map(migration => migration.name)
}
