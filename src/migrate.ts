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
  const { error, results = [] } = await migrator(db).migrateToLatest()
  if (error) throw error
  await migrateJobs({ pgPool: pool })
  return results.filter(result => result.status === 'Success').map(result => result.migrationName)
}

/** The migrations that this version of the program has and the database has not. */
export async function pendingMigrations(db: Db): Promise<string[]> {
  const all = await migrator(db).getMigrations()
  return all.filter(migration => migration.executedAt === undefined).map(migration => migration.name)
}
