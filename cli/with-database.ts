import type { Logger } from 'pino'
import { systemClock } from '../src/clock.ts'
import { readSettings, type Settings } from '../src/config.ts'
import type { Db, Tx } from '../src/database/database.ts'
import { type Database, openDatabase, prepare, requireSchema } from '../src/open-database.ts'
import { claimMode } from '../src/partners/partners.ts'
import type { Sealer } from '../src/sealing/sealer.ts'
import { openLog } from './log.ts'
import { terminal } from './terminal.ts'

/**
 * Runs `work` on the configured database and always closes it. The embedded PostgreSQL is shared with a running service or
 * started for the duration of the command, and migrated if needed. With DATABASE_URL, the operator migrates.
 */
export async function withDatabase<T>(
  work: (db: Db, settings: Settings, opened: { database: Database; sealer: Sealer; log: Logger }) => Promise<T>,
): Promise<T> {
  const settings = readSettings(terminal().env)
  // Warnings go to standard error, so that the output can be piped.
  const log = openLog('warn')
  const database = await openDatabase(settings, log)
  try {
    const sealer = await prepare(database, { mayMigrate: settings.DATABASE_URL === '', log })
    return await work(database.db, settings, { database, sealer, log })
  } finally {
    await database.close()
  }
}

/** Runs `work` on the migrated database without opening its keys. */
export async function withUnopenedKeys(
  work: (database: Database, settings: Settings) => Promise<void>,
  { as = 'app' }: { as?: 'app' | 'owner' } = {},
): Promise<void> {
  const settings = readSettings(terminal().env)
  const database = await openDatabase(settings, openLog('warn'), { as, mayCreate: false })
  try {
    await requireSchema(database.db)
    await work(database, settings)
  } finally {
    await database.close()
  }
}

/** Runs `work` on the configured database as the owner of its tables, and always closes it. */
export async function withOwner<T>(work: (database: Database) => Promise<T>): Promise<T> {
  const database = await openDatabase(readSettings(terminal().env), openLog('warn'), { as: 'owner', mayCreate: false })
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

/** Runs `work` in one transaction. Throws if the database belongs to the other mode. */
export async function withTransaction<T>(work: (tx: Tx, settings: Settings) => Promise<T>): Promise<T> {
  return await withDatabase((db, settings) =>
    db.transaction().execute(async tx => {
      await claimMode(tx, { mode: settings.MIDMONTH_MODE, now: systemClock() })
      return await work(tx, settings)
    }),
  )
}
