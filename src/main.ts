import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import type { Logger } from 'pino'
import { buildApp } from './app.ts'
import type { Settings } from './config.ts'
import { connect, type Db, requireDurability } from './db.ts'
import { startEmbeddedPostgres } from './embedded/embedded.ts'
import { migrate, pendingMigrations } from './migrate.ts'
import { claimMode } from './partners/partners.ts'
import type { Clock } from './time.ts'
import { startWorker } from './worker.ts'

/** The one real clock; everybody else is handed it. */
export const systemClock: Clock = () => new Date()

export type Database = {
  db: Db
  pool: pg.Pool
  /** Where the data of the PostgreSQL that came with Openwage is; undefined with a DATABASE_URL. */
  dataDir: string | undefined
  psqlHint: string | undefined
  close(): Promise<void>
}

/**
 * Opens the database that the settings name, or the one that came with Openwage, which is started, or joined when another
 * process has it running.
 * @throws with a sentence for the operator
 */
export async function openDatabase(settings: Settings, log: Logger): Promise<Database> {
  const embedded =
    settings.DATABASE_URL === ''
      ? await startEmbeddedPostgres({
          checkoutDir: fileURLToPath(new URL('..', import.meta.url)),
          ...(settings.OPENWAGE_DATA_DIR === '' ? {} : { dataDir: settings.OPENWAGE_DATA_DIR }),
          onLost: reason => log.error({ reason }, 'PostgreSQL was lost and is started again'),
        })
      : undefined
  const { db, pool } = connect(embedded?.connection ?? settings.DATABASE_URL, {
    log,
    connectionsMax: settings.OPENWAGE_DATABASE_CONNECTIONS,
  })
  const close = async () => {
    await db.destroy()
    await embedded?.stop()
  }
  try {
    await requireDurability(db)
  } catch (error) {
    await close()
    throw error
  }
  return { db, pool, dataDir: embedded?.dataDir, psqlHint: embedded?.psqlHint, close }
}

export type Roles = { api: boolean; worker: boolean }

export type Running = {
  /** `http://127.0.0.1:8080`; undefined without the API. */
  address: string | undefined
  /** Stops taking requests, lets the running ones and the running steps end, and lets go of the database. */
  stop(): Promise<void>
}

/**
 * Brings the schema up to date where this process does everything (a small installation). Where the roles are apart, the
 * operator migrates first, with `openwage migrate`.
 * @throws with a sentence for the operator
 */
export async function prepare(
  { db, pool }: Database,
  { settings, roles, now }: { settings: Settings; roles: Roles; now: Clock },
): Promise<void> {
  if (roles.api && roles.worker) await migrate(db, pool)
  const pending = await pendingMigrations(db)
  if (pending.length > 0)
    throw new Error(`The database is not up to date (${pending.join(', ')}): run openwage migrate first`)
  await db.transaction().execute(tx => claimMode(tx, { mode: settings.OPENWAGE_MODE, now: now() }))
}

/** Starts what `roles` names, over a prepared database. */
export async function run(
  database: Database,
  { settings, roles, log, now }: { settings: Settings; roles: Roles; log: Logger; now: Clock },
): Promise<Running> {
  const { db, pool } = database
  const worker = roles.worker ? await startWorker({ db, log, now }, pool) : undefined
  const app = roles.api ? await buildApp({ db, log, now, mode: settings.OPENWAGE_MODE }) : undefined
  const address = await app?.listen({ host: settings.HOST, port: settings.PORT }).catch(async error => {
    await worker?.stop()
    throw error
  })
  return {
    address,
    async stop() {
      await app?.close()
      await worker?.stop()
      await database.close()
    },
  }
}
