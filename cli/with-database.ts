import { readSettings, type Settings } from '../src/config.ts'
import type { Db, Tx } from '../src/database/database.ts'
import { openDatabase, prepare, systemClock } from '../src/main.ts'
import { claimMode } from '../src/partners/partners.ts'
import { openLog } from './log.ts'

/**
 * Does one thing on the database that the settings name and closes it again, whatever happens. The embedded PostgreSQL is
 * joined when the service has it running, or started for the while, and its schema is brought up to date. With a
 * DATABASE_URL the operator migrates.
 */
export async function withDatabase<T>(work: (db: Db, settings: Settings) => Promise<T>): Promise<T> {
  const settings = readSettings(process.env)
  // What is worth a warning goes to standard error, so that the output can be piped.
  const log = openLog('warn')
  const database = await openDatabase(settings, log)
  try {
    await prepare(database, { mayMigrate: settings.DATABASE_URL === '', log })
    return await work(database.db, settings)
  } finally {
    await database.close()
  }
}

/** Makes or changes something in one transaction; refused where the database is for the other mode. */
export async function withTransaction<T>(work: (tx: Tx, settings: Settings) => Promise<T>): Promise<T> {
  return await withDatabase((db, settings) => inTransaction(db, settings, work))
}

/** The same on a database that is open already: for a command that asks a question before it changes anything. */
export async function inTransaction<T>(
  db: Db,
  settings: Settings,
  work: (tx: Tx, settings: Settings) => Promise<T>,
): Promise<T> {
  return await db.transaction().execute(async tx => {
    await claimMode(tx, { mode: settings.OPENWAGE_MODE, now: systemClock() })
    return await work(tx, settings)
  })
}
