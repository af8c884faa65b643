import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Logger } from 'pino'
import { defaultHealthPort, type Settings, SettingsProblem } from './config.ts'
import { type Connection, connect, type Databases } from './database/connect.ts'
import type { Db } from './database/database.ts'
import { requireDurability } from './database/durability.ts'
import { type AppRole, describeExcess } from './database/grants.ts'
import { migrate } from './database/migrate.ts'
import { describeNewerSchema, readSchemaState } from './database/migrations.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded/embedded.ts'
import { type Listening, ListenProblem, listen } from './http/listening.ts'
import type { App } from './http/server.ts'
import type { Rail } from './payouts/rail.ts'
import { simulatedBank } from './payouts/simulated-bank.ts'
import type { Clock } from './time.ts'
import type { Worker } from './worker.ts'

/** The one real clock; everybody else is handed it. */
export const systemClock: Clock = () => new Date()

export type Database = Databases & {
  /** How to connect as the role that owns the database, for migrations and nothing else. */
  ownerConnection: Connection
  appRole: AppRole
  /** Where the data of the PostgreSQL that came with Openwage is; undefined with a DATABASE_URL. */
  dataDir: string | undefined
  psqlHint: string | undefined
}

/**
 * Opens the database that the settings name, or the one that came with Openwage, which is started, or joined when another
 * process has it running.
 * @param options.mayCreate false for a command that only looks: it does not create the database that comes with Openwage
 * @param options.as who to connect as: the program's own role, or the owner, before the other role may exist
 * @throws with a sentence for the operator
 */
export async function openDatabase(
  settings: Settings,
  log: Logger,
  { as = 'app', mayCreate = true }: { as?: 'app' | 'owner'; mayCreate?: boolean } = {},
): Promise<Database> {
  if (settings.DATABASE_URL === '' && settings.DATABASE_OWNER_URL !== '')
    throw new SettingsProblem(
      'DATABASE_OWNER_URL needs a DATABASE_URL, as which the service connects to the same database',
    )
  const embedded = settings.DATABASE_URL === '' ? await openEmbedded(settings, { log, mayCreate }) : undefined
  const appConnection = embedded?.connection ?? settings.DATABASE_URL
  const ownerConnection = embedded?.ownerConnection ?? (settings.DATABASE_OWNER_URL || settings.DATABASE_URL)
  const databases = connect(as === 'app' ? appConnection : ownerConnection, {
    log,
    connectionsMax: settings.OPENWAGE_DATABASE_CONNECTIONS,
  })
  const close = async () => {
    await databases.close()
    await embedded?.stop()
  }
  try {
    await requireDurability(databases.db)
  } catch (error) {
    await close()
    if (embedded !== undefined) throw error
    const setting = as === 'owner' && settings.DATABASE_OWNER_URL !== '' ? 'DATABASE_OWNER_URL' : 'DATABASE_URL'
    // The address is not shown: it holds a password.
    const reason = `The database of ${setting} cannot be used: ${reasonOf(error)}`
    throw new Error(reason + remedyOf(error, as === 'app' ? appConnection : ownerConnection), { cause: error })
  }
  return {
    ...databases,
    ...{ ownerConnection, appRole: appRoleOf(appConnection) },
    ...{ dataDir: embedded?.dataDir, psqlHint: embedded?.psqlHint, close },
  }
}

function remedyOf(error: unknown, connection: Connection): string {
  // 42501, insufficient privilege: before anything is asked for, only the right to connect can be what is missing.
  if (!(error instanceof pg.DatabaseError) || error.code !== '42501') return ''
  const { database = '', user = '' } = new pg.Client(connection)
  return `; let its owner run: grant connect on database ${pg.escapeIdentifier(database)} to ${pg.escapeIdentifier(user)};`
}

// As the driver understands the connection, which also looks at PGUSER.
function appRoleOf(connection: Connection): AppRole {
  const { user = '', password } = new pg.Client(connection)
  return { name: user, ...(typeof password === 'string' ? { password } : {}) }
}

async function openEmbedded(
  { OPENWAGE_DATA_DIR: dataDir }: Settings,
  { log, mayCreate }: { log: Logger; mayCreate: boolean },
): Promise<EmbeddedPostgres> {
  return await startEmbeddedPostgres({
    mayCreate,
    checkoutDir: fileURLToPath(new URL('..', import.meta.url)),
    ...(dataDir === '' ? {} : { dataDir }),
    onProgress: step => log.info(step),
    onLost: reason => log.error({ reason }, 'PostgreSQL was lost and is started again'),
    onBack: () => log.info('PostgreSQL is back'),
  })
}

/**
 * What is to be told of an error in a sentence. A name with several addresses that all fail (`localhost`) gives an error
 * without a message, around one for each.
 */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return reasonOf(error.errors[0])
  return error instanceof Error ? error.message : String(error)
}

/**
 * Sees to a schema that is up to date.
 * @param mayMigrate false where the operator does that, with `openwage migrate`
 * @throws with a sentence for the operator
 */
export async function prepare(
  { db, ownerConnection, appRole }: Database,
  {
    mayMigrate,
    log,
    onProgress = () => undefined,
  }: { mayMigrate: boolean; log: Logger; onProgress?: (step: string) => void },
): Promise<void> {
  if (mayMigrate) {
    const owner = connect(ownerConnection, { log, connectionsMax: ownerConnectionsMax })
    try {
      // As the owner: another process may be migrating at this moment, and has granted nothing yet.
      if ((await readSchemaState(owner.db)).pending.length > 0) onProgress('creating and updating tables')
      await migrate(owner.db, owner.pool, appRole)
    } finally {
      await owner.close()
    }
  }
  const state = await readSchemaState(db)
  if (state.pending.length > 0)
    throw new Error(`The database is not up to date (${state.pending.join(', ')}): run openwage migrate first`)
  const tooNew = await describeNewerSchema(state)
  if (tooNew !== undefined) throw new Error(tooNew)
}

// One holds the lock, one migrates, and one is for the job queue's migrations.
const ownerConnectionsMax = 3

export type Roles = { api: boolean; worker: boolean }

export type Running = {
  /** `http://127.0.0.1:8080`; undefined without the API. */
  address: string | undefined
  /**
   * Stops in order: /readyz says so, then no requests are taken any more, the running ones and the running steps end, and the
   * database is let go.
   * @param drainMs for how long to go on answering first, so that a load balancer sees /readyz and sends requests elsewhere
   */
  stop(options?: { drainMs?: number }): Promise<void>
}

/**
 * Starts what `roles` names, over a prepared database. A worker alone answers health probes on a port of its own.
 * @throws with a sentence for the operator; the database stays open, and nothing else does
 */
export async function run(
  database: Database,
  { settings, roles, log, now }: { settings: Settings; roles: Roles; log: Logger; now: Clock },
): Promise<Running> {
  const { db, batchDb, withCopying, pool } = database
  const { HOST: host, PORT: port, OPENWAGE_HEALTH_PORT: healthPort, OPENWAGE_MODE: mode } = settings
  let app: App | undefined
  let listening: Listening | undefined
  let worker: Worker | undefined
  const stop = async ({ drainMs = 0 } = {}) => {
    await Promise.all([listening?.close({ drainMs }) ?? app?.close(), worker?.stop()])
  }
  const excess = await describeExcess(db)
  if (excess !== undefined) log.warn(excess)
  try {
    // Only now, and only what is asked for: they are most of what there is to load.
    const context = { db, log, now, mode, trustedProxies: settings.OPENWAGE_TRUST_PROXY }
    app = roles.api
      ? await (await import('./app.ts')).buildApp(
          { ...context, batchDb, withCopying, hasRail: hasRail(settings) },
          { hasDocs: settings.OPENWAGE_DOCS === 'on' },
        )
      : await (await import('./http/health.ts')).buildHealthApp(context, {
          isWorking: () => worker?.isWorking() ?? false,
        })
    listening = roles.api
      ? await listen(app, { host, port, setting: 'PORT' })
      : await listenForProbes(app, { host, port: healthPort, log })
    // Nobody waits for it, and a start does not fail of it.
    if (roles.api) {
      void import('./http/uploaded-file.ts')
        .then(({ removeLeftBehind }) => removeLeftBehind())
        .catch(error => log.warn({ err: error }, 'files of an earlier process are still there'))
    }
    // After the port is ours: what cannot serve leaves the work to others.
    if (roles.worker) {
      const { startWorker } = await import('./worker.ts')
      worker = await startWorker({ db, log, now }, pool, railOf(settings, { db, log, now }))
    }
    return {
      address: roles.api ? listening?.address : undefined,
      async stop(options) {
        await stop(options)
        await database.close()
      },
    }
  } catch (error) {
    // Best effort: what cannot be closed must not keep the reason from the operator.
    await Promise.race([stop().catch(() => undefined), pause(closeMsMax, undefined, { ref: false })])
    throw error
  }
}

// Closing takes milliseconds, unless the database has just gone.
const closeMsMax = 3_000

/**
 * A worker pays people whether or not it can be probed, and the second one on a machine finds the default port taken: it
 * runs without health probes then. A port that the operator has set is expected by a supervisor.
 */
async function listenForProbes(
  app: App,
  { host, port, log }: { host: string; port: number | undefined; log: Logger },
): Promise<Listening | undefined> {
  const setting = 'OPENWAGE_HEALTH_PORT'
  try {
    return await listen(app, { host, port: port ?? defaultHealthPort, setting })
  } catch (error) {
    if (port !== undefined || !(error instanceof ListenProblem) || error.code !== 'EADDRINUSE') throw error
    log.warn(
      `The port ${defaultHealthPort} of ${host} is in use, so this worker runs without health probes: ` +
        `set ${setting} to a port of its own, or to 0 for any that is free`,
    )
    return undefined
  }
}

/**
 * Whether withdrawals can be paid out. Every process answers by the settings alone, so that an API without a worker beside
 * it refuses what no worker could carry out. The simulated bank moves no money: live mode never pays through it.
 */
export function hasRail({ OPENWAGE_MODE: mode }: Pick<Settings, 'OPENWAGE_MODE'>): boolean {
  return mode === 'sandbox'
}

function railOf(settings: Settings, { db, log, now }: { db: Db; log: Logger; now: Clock }): Rail | null {
  if (hasRail(settings)) return simulatedBank({ db, now })
  log.warn(
    'No bank is connected: withdrawals are refused, those already held can only be cancelled, and no money leaves. See docs/guides/go-live.md',
  )
  return null
}
