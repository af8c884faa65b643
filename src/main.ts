import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Logger } from 'pino'
import { type Settings, SettingsProblem } from './config.ts'
import { type Connection, connect, type Db, requireDurability } from './db.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded/embedded.ts'
import { type AppRole, describeExcess } from './grants.ts'
import type { App } from './http/server.ts'
import { migrate } from './migrate.ts'
import { describeNewerSchema, readSchemaState } from './migrations.ts'
import type { Rail } from './payouts/rail.ts'
import { simulatedBank } from './payouts/simulated-bank.ts'
import type { Clock } from './time.ts'

/** The one real clock; everybody else is handed it. */
export const systemClock: Clock = () => new Date()

export type Database = {
  db: Db
  /** The same database, over the connections that batches run on. */
  batchDb: Db
  pool: pg.Pool
  /** How to connect as the role that owns the database, for migrations and nothing else. */
  ownerConnection: Connection
  appRole: AppRole
  /** Where the data of the PostgreSQL that came with Openwage is; undefined with a DATABASE_URL. */
  dataDir: string | undefined
  psqlHint: string | undefined
  close(): Promise<void>
}

/**
 * Opens the database that the settings name, or the one that came with Openwage, which is started, or joined when another
 * process has it running.
 * @param options.as who to connect as: the program's own role, or the owner, before the other role may exist
 * @throws with a sentence for the operator
 */
export async function openDatabase(
  settings: Settings,
  log: Logger,
  { as = 'app' }: { as?: 'app' | 'owner' } = {},
): Promise<Database> {
  if (settings.DATABASE_URL === '' && settings.DATABASE_OWNER_URL !== '')
    throw new SettingsProblem(
      'DATABASE_OWNER_URL needs a DATABASE_URL, as which the service connects to the same database',
    )
  const embedded = settings.DATABASE_URL === '' ? await openEmbedded(settings, log) : undefined
  const appConnection = embedded?.connection ?? settings.DATABASE_URL
  const ownerConnection = embedded?.ownerConnection ?? (settings.DATABASE_OWNER_URL || settings.DATABASE_URL)
  const {
    db,
    batchDb,
    pool,
    close: disconnect,
  } = connect(as === 'app' ? appConnection : ownerConnection, {
    log,
    connectionsMax: settings.OPENWAGE_DATABASE_CONNECTIONS,
  })
  const close = async () => {
    await disconnect()
    await embedded?.stop()
  }
  try {
    await requireDurability(db)
  } catch (error) {
    await close()
    if (embedded !== undefined) throw error
    const setting = as === 'owner' && settings.DATABASE_OWNER_URL !== '' ? 'DATABASE_OWNER_URL' : 'DATABASE_URL'
    // The address is not shown: it holds a password.
    const reason = `The database of ${setting} cannot be used: ${reasonOf(error)}`
    throw new Error(reason + remedyOf(error, as === 'app' ? appConnection : ownerConnection), { cause: error })
  }
  return {
    ...{ db, batchDb, pool, ownerConnection, appRole: appRoleOf(appConnection) },
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

async function openEmbedded({ OPENWAGE_DATA_DIR: dataDir }: Settings, log: Logger): Promise<EmbeddedPostgres> {
  return await startEmbeddedPostgres({
    checkoutDir: fileURLToPath(new URL('..', import.meta.url)),
    ...(dataDir === '' ? {} : { dataDir }),
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
  { mayMigrate, log }: { mayMigrate: boolean; log: Logger },
): Promise<void> {
  if (mayMigrate) {
    const owner = connect(ownerConnection, { log, connectionsMax: ownerConnectionsMax })
    try {
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
  /** Stops taking requests, lets the running ones and the running steps end, and lets go of the database. */
  stop(): Promise<void>
}

/**
 * Starts what `roles` names, over a prepared database.
 * @throws with a sentence for the operator; the database stays open
 */
export async function run(
  database: Database,
  { settings, roles, log, now }: { settings: Settings; roles: Roles; log: Logger; now: Clock },
): Promise<Running> {
  const { db, batchDb, pool } = database
  const excess = await describeExcess(db)
  if (excess !== undefined) log.warn(excess)
  // Only now, and only what is asked for: they are most of what there is to load.
  const app = roles.api
    ? await (await import('./app.ts')).buildApp({ db, batchDb, pool, log, now, mode: settings.OPENWAGE_MODE })
    : undefined
  const address = app && (await listen(app, settings))
  // Nobody waits for it, and a start does not fail of it.
  if (app !== undefined) {
    void import('./http/upload.ts')
      .then(({ removeLeftBehind }) => removeLeftBehind(now()))
      .catch(error => log.warn({ err: error }, 'files of an earlier process are still there'))
  }
  // After the port is ours: what cannot serve leaves the work to others.
  const worker = roles.worker
    ? await (await import('./worker.ts'))
        .startWorker({ db, log, now }, pool, railOf(settings, { db, log, now }))
        .catch(async error => {
          await app?.close()
          throw error
        })
    : undefined
  return {
    address,
    async stop() {
      await Promise.all([app && close(app), worker?.stop()])
      await database.close()
    },
  }
}

// Connections that nobody has accepted yet. Beyond it the kernel drops packets, and a client waits seconds for what would be
// refused at once; with Node's 511 a thousand clients that reconnect together are enough.
const backlogMax = 4_096

async function listen(app: App, { HOST: host, PORT: port }: Settings): Promise<string> {
  try {
    return await app.listen({ host, port, backlog: backlogMax })
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    const reasons: Record<string, string> = {
      EADDRINUSE: `The port ${port} of ${host} is in use: set PORT to another one, or to 0 for any that is free`,
      EACCES: `This user may not listen on the port ${port}: set PORT to one above 1023`,
      EADDRNOTAVAIL: `${host} is not an address of this machine: set HOST to one that is, or to 0.0.0.0 for all`,
      ENOTFOUND: `There is no address for ${host}: set HOST to an address of this machine, or to 0.0.0.0 for all`,
    }
    throw code in reasons ? new Error(reasons[code], { cause: error }) : error
  }
}

/** Lets the running requests end. */
async function close(app: App): Promise<void> {
  // Fastify closes the connections that are idle now; one that its client keeps open after its last answer would hold up
  // the end for more than a minute.
  const sweep = setInterval(() => app.server.closeIdleConnections(), 50)
  try {
    await app.close()
  } finally {
    clearInterval(sweep)
  }
}

// The simulated bank moves no money, so that it is never anybody's bank in earnest.
function railOf({ OPENWAGE_MODE: mode }: Settings, { db, log, now }: { db: Db; log: Logger; now: Clock }): Rail | null {
  if (mode === 'sandbox') return simulatedBank({ db, now })
  log.warn(
    'There is no bank to pay through yet: every withdrawal stays held and can be cancelled, and no money leaves. See docs/payouts.md',
  )
  return null
}
