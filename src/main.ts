import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { EmbeddedPostgres, Restoring, WalCommands } from '@midmonth/embedded-postgres'
import pg from 'pg'
import type { Logger } from 'pino'
import type { RestorePlan } from './backups/restore.ts'
import type { BackupTarget } from './backups/sealed.ts'
import { backupTargetOf } from './backups/target.ts'
import { defaultHealthPort, type Settings, SettingsProblem } from './config.ts'
import { type Connection, connect, connectFirst, type Databases } from './database/connect.ts'
import type { Db } from './database/database.ts'
import { requireDurability } from './database/durability.ts'
import { beginRestore, startEmbeddedPostgres } from './database/embedded.ts'
import { type AppRole, describeExcess } from './database/grants.ts'
import { addressesOf, NoPrimary } from './database/hosts.ts'
import { type Migrated, type Migrating, migrate } from './database/migrate.ts'
import { describeNewerSchema, readSchemaState } from './database/migrations.ts'
import { requireOwnSessions } from './database/own-session.ts'
import { Replica } from './database/replica.ts'
import { completeJournal, eraseAgain } from './erasure/erasure.ts'
import { type ErasureSettings, erasureSettingsOf } from './erasure/journal.ts'
import { type Listening, ListenProblem, listen } from './http/server/listening.ts'
import type { ApiContext, App } from './http/server/server.ts'
import { currencies } from './kernel/money.ts'
import { retentionOf } from './kernel/retention.ts'
import type { Clock } from './kernel/time.ts'
import { countMembersWithoutKeys, membersWithoutKeysInWords } from './members/key-checks.ts'
import type { MetricsSource } from './metrics/metrics-source.ts'
import { noticeSettingsOf } from './notices/settings.ts'
import type { Installation, InstallationContext } from './operators/operation-context.ts'
import type { FileRailSettings } from './payouts/books/file-rail-settings.ts'
import { detectRestore, findRestore, restoreInWords } from './payouts/books/restores.ts'
import type { Channel } from './payouts/channels/channel.ts'
import { banksOn, fileRailsOf, type Rail } from './payouts/channels/rail.ts'
import { openSimulatedBank } from './payouts/registry.ts'
import { RequestLog } from './requests/recorder.ts'
import { ensureInstallationKey, openSealer, refuseUsed, requireRestoredKeys } from './sealing/installation-keys.ts'
import { describeKey, type KeySource, keySourceOf } from './sealing/key-providers.ts'
import { rotationOf, unfinishedRotations } from './sealing/rotation.ts'
import type { Sealer } from './sealing/sealer.ts'
import type { noticeTasks } from './tasks.ts'
import type { Tracing } from './tracing/tracing.ts'
import { Fence } from './webhooks/fence.ts'
import type { Worker } from './worker.ts'

const checkoutDir = fileURLToPath(new URL('..', import.meta.url))

/** The only real clock. Everything else receives a clock as an argument. */
export const systemClock: Clock = () => new Date()

export type Database = Databases & {
  /** Connects as the role that owns the database. Only for migrations. */
  ownerConnection: Connection
  appRole: AppRole
  /** The embedded PostgreSQL; undefined with DATABASE_URL. */
  embedded: EmbeddedPostgres | undefined
  /** The data directory of the embedded PostgreSQL; undefined with DATABASE_URL. */
  dataDir: string | undefined
  /** Where the installation's key is. */
  keySource: KeySource
  erasures: ErasureSettings
  psqlHint: string | undefined
}

/**
 * Opens the configured database, or the embedded PostgreSQL, which is shared if another process is already running it.
 * @param options.mayCreate false for a command that only reads and must not create an embedded database
 * @param options.as the role to connect as: the app role, or the owner, which works before the app role exists
 * @param options.restored the embedded database to recover instead, in a separate folder
 * @param options.isStarting whether connecting may take a minute; false for a command that reports whether the database answers
 * @throws Error with a message for the operator
 */
export async function openDatabase(
  settings: Settings,
  log: Logger,
  {
    as = 'app',
    mayCreate = true,
    restored,
    isStarting = true,
  }: { as?: 'app' | 'owner'; mayCreate?: boolean; restored?: Restored; isStarting?: boolean } = {},
): Promise<Database> {
  if (settings.DATABASE_URL === '' && settings.DATABASE_OWNER_URL !== '')
    throw new SettingsProblem(
      'DATABASE_OWNER_URL requires DATABASE_URL: set it to the address at which the service connects to the same database',
    )
  const target = backupTargetOf(settings)
  const embedded =
    settings.DATABASE_URL === '' ? await openEmbedded(settings, { log, mayCreate, target, restored }) : undefined
  const dataDir = restored?.restoring.configuredDir ?? embedded?.dataDir ?? path.join(checkoutDir, 'data')
  const keySource = keySourceOf(settings, { dataDir })
  const erasures = erasureSettingsOf(settings, { keySource, dataDir })
  const appConnection = embedded?.connection ?? settings.DATABASE_URL
  const ownerConnection = embedded?.ownerConnection ?? (settings.DATABASE_OWNER_URL || settings.DATABASE_URL)
  const databases = connect(as === 'app' ? appConnection : ownerConnection, {
    log,
    connectionsMax: Math.max(settings.MIDMONTH_DATABASE_CONNECTIONS, as === 'owner' ? ownerConnectionsMax : 0),
    lanes: settings.MIDMONTH_LANES,
    isStarting,
  })
  const close = async () => {
    await databases.close()
    await embedded?.stop()
  }
  try {
    await connectFirst(databases.pool, log)
    if (embedded === undefined) await requireOwnSessions(databases.pool)
    await requireDurability(databases.db)
  } catch (error) {
    await close()
    if (embedded !== undefined) throw error
    const setting = as === 'owner' && settings.DATABASE_OWNER_URL !== '' ? 'DATABASE_OWNER_URL' : 'DATABASE_URL'
    // Never shows the address, which contains a password.
    const reason = `Cannot use the database at ${setting}: ${reasonOf(error)}`
    throw new Error(reason + remedyOf(error, as === 'app' ? appConnection : ownerConnection), { cause: error })
  }
  return {
    ...databases,
    ...{ ownerConnection, appRole: appRoleOf(appConnection) },
    ...{ embedded, dataDir: embedded?.dataDir, keySource, erasures, psqlHint: embedded?.psqlHint, close },
  }
}

function remedyOf(error: unknown, connection: Connection): string {
  const refusal = error instanceof NoPrimary ? error.refusal : error
  // 42501, insufficient privilege. No query has run yet, so only the right to connect can be missing.
  if (!(refusal instanceof pg.DatabaseError) || refusal.code !== '42501') return ''
  const { database = '', user = '' } = new pg.Client(firstOf(connection))
  return `; as its owner, run: grant connect on database ${pg.escapeIdentifier(database)} to ${pg.escapeIdentifier(user)};`
}

// Resolved by the driver, which also reads PGUSER.
function appRoleOf(connection: Connection): AppRole {
  const { user = '', password } = new pg.Client(firstOf(connection))
  return { name: user, ...(typeof password === 'string' ? { password } : {}) }
}

function firstOf(connection: Connection): Connection | undefined {
  return typeof connection === 'string' ? addressesOf(connection)[0] : connection
}

/** A backup that is being restored. @property isKept false if it is only looked at */
export type Restored = { plan: RestorePlan; restoring: Restoring; isKept: boolean }

async function openEmbedded(
  settings: Settings,
  {
    log,
    mayCreate,
    target,
    restored,
  }: { log: Logger; mayCreate: boolean; target: BackupTarget | undefined; restored: Restored | undefined },
): Promise<EmbeddedPostgres> {
  // Nothing is archived before a restore has succeeded, and is in use: the archive may be the one of a server that runs.
  const isArchived = target !== undefined && restored === undefined
  const archive: WalCommands = isArchived
    ? {
        async archive(segment, source) {
          // Loaded late: most commands archive nothing.
          const { archiveSegment } = await import('./backups/wal-archive.ts')
          await archiveSegment(target, { segment, source })
        },
      }
    : {}
  const wal = { ...archive, ...restored?.plan.wal }
  const folder = restored?.restoring.dataDir ?? settings.MIDMONTH_DATA_DIR
  return await startEmbeddedPostgres({
    mayCreate,
    onCreate: dataDir => refuseUsed(keySourceOf(settings, { dataDir })),
    checkoutDir,
    ...(folder === '' ? {} : { dataDir: folder }),
    ...(Object.keys(wal).length === 0 ? {} : { wal }),
    settings: {
      ...restored?.plan.settings,
      // Without a command, PostgreSQL keeps the WAL and the history of the new timeline for the archive, until the next start.
      ...(restored?.isKept ? { archive_mode: 'on' } : {}),
    },
    onProgress: step => log.info(step),
    onLost: reason => log.error({ reason }, 'lost PostgreSQL: restarting it'),
    onBack: () => log.info('PostgreSQL is back'),
  })
}

/**
 * Restores the embedded database in a folder inside the configured one, and opens it there.
 * @param options.beside leaves the configured database as it is; otherwise there must be none
 */
export async function openRestored(
  settings: Settings,
  log: Logger,
  { plan, beside }: { plan: RestorePlan; beside: boolean },
): Promise<{ database: Database; restoring: Restoring }> {
  const { MIDMONTH_DATA_DIR: dataDir } = settings
  const where = { checkoutDir, ...(dataDir === '' ? {} : { dataDir }) }
  const restoring = await beginRestore({ ...where, beside, fill: plan.fill })
  try {
    const restored = { plan, restoring, isKept: !beside }
    return { database: await openDatabase(settings, log, { restored }), restoring }
  } catch (error) {
    restoring.remove()
    throw error
  }
}

/**
 * The message of an error. Connecting to a name with several addresses (`localhost`) fails with an AggregateError
 * whose message is empty.
 */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return reasonOf(error.errors[0])
  return error instanceof Error ? error.message : String(error)
}

/**
 * Brings the schema up to date. Binds a new database to the installation's key, and checks that any other has the same key.
 * @param database connected as the owner
 */
export async function migrateDatabase(
  { db, pool, appRole, keySource }: Pick<Database, 'db' | 'pool' | 'appRole' | 'keySource'>,
  options: Migrating = {},
): Promise<Migrated> {
  const migrated = await migrate(db, pool, appRole, options)
  await requireRestoredKeys(db)
  await ensureInstallationKey(db, { source: keySource, now: systemClock() })
  await openSealer(db, keySource)
  return migrated
}

/**
 * Ensures that the schema is up to date, opens the installation's key, and erases the members again that a restored database still has.
 * Holds all rails if the database was restored.
 * @param mayMigrate false if the operator migrates, with `midmonth migrate`
 * @param recoveredUntil the last commit of the backup that was just restored
 * @throws Error with a message for the operator
 */
export async function prepare(
  { db, ownerConnection, appRole, embedded, keySource, erasures }: Database,
  {
    mayMigrate,
    log,
    recoveredUntil = null,
    onProgress = () => undefined,
  }: { mayMigrate: boolean; log: Logger; recoveredUntil?: Date | null; onProgress?: (step: string) => void },
): Promise<Sealer> {
  if (mayMigrate) {
    const owner = connect(ownerConnection, { log, connectionsMax: ownerConnectionsMax, isStarting: true })
    try {
      await connectFirst(owner.pool, log)
      if (embedded === undefined) await requireOwnSessions(owner.pool)
      // As the owner: while another process is migrating, the app role may have no rights yet.
      if ((await readSchemaState(owner.db)).pending.length > 0) onProgress('creating and updating tables')
      await migrateDatabase({ ...owner, appRole, keySource })
    } finally {
      await owner.close()
    }
  }
  await requireSchema(db)
  await warnOfRestore(db, { log, recoveredUntil })
  const sealer = await openSealer(db, keySource, {
    onStale: error =>
      log.error(
        { err: error },
        'nothing is sealed until the installation’s keys can be read again: requests are refused',
      ),
  })
  for (const purpose of await unfinishedRotations(db))
    log.warn(
      { purpose },
      `a rotation of keys is unfinished; unless it is running, continue it with ${rotationOf(purpose)}`,
    )
  const erasedCount = await eraseAgain(db, erasures)
  if (erasedCount > 0) log.warn({ count: erasedCount }, 'erased members again that the database was restored with')
  await mendJournal(db, { erasures, log })
  await warnOfMissingKeys(db, log)
  return sealer
}

/** Detects that the database was restored, and warns until the banks are compared: nothing is sent to them meanwhile. */
export async function warnOfRestore(
  db: Db,
  { log, recoveredUntil = null }: { log: Logger; recoveredUntil?: Date | null },
): Promise<void> {
  await detectRestore(db, { recoveredUntil, now: systemClock() })
  const restore = await findRestore(db)
  if (restore !== undefined) log.warn({ detectedAt: restore.detectedAt }, restoreInWords(restore))
}

/** Warns of members who were restored without their keys. Best effort: looking must not block a start. */
export async function warnOfMissingKeys(db: Db, log: Logger): Promise<void> {
  try {
    const count = await countMembersWithoutKeys(db)
    if (count > 0) log.warn({ count }, membersWithoutKeysInWords(count))
  } catch (error) {
    log.warn({ err: error }, 'cannot check whether members have their keys')
  }
}

/** Warns if the journal of erasures has lost some, and writes them again. Best effort: erasing is refused without a writable journal. */
async function mendJournal(db: Db, { erasures, log }: { erasures: ErasureSettings; log: Logger }): Promise<void> {
  const { journal } = erasures
  try {
    const count = await completeJournal(db, erasures)
    if (count === 0) return
    log.warn(
      { count, journal },
      'the journal of erasures lacked erasures that the database knows, which were written again; if it was lost, restore its backup and start again',
    )
  } catch (error) {
    log.warn(
      { err: error, journal },
      'the journal of erasures lacks erasures that the database knows, and cannot be written',
    )
  }
}

/** @throws Error with a message for the operator if the schema is not that of this version */
export async function requireSchema(db: Db): Promise<void> {
  const state = await readSchemaState(db)
  if (state.pending.length > 0)
    throw new Error(`The database schema is out of date; run midmonth migrate (pending: ${state.pending.join(', ')})`)
  const tooNew = describeNewerSchema(state)
  if (tooNew !== undefined) throw new Error(tooNew)
}

// One holds the lock, one migrates our schema, one migrates graphile-worker's.
const ownerConnectionsMax = 3

/** What the operations of operators run on, in the process of a command. */
export async function operatorContext(
  { db, batchDb, withCopying, keySource, erasures }: Database,
  { settings, sealer, log }: { settings: Settings; sealer: Sealer; log: Logger },
): Promise<InstallationContext> {
  const rails = await readRails(settings)
  const bankOf = banksOf(settings, rails)
  return {
    ...{ db, batchDb, withCopying, sealer, log, now: systemClock, mode: settings.MIDMONTH_MODE, erasures },
    ...{ bankOf, rails, banks: banksOn(rails, bankOf), installation: await installationOf(settings, { keySource }) },
  }
}

async function installationOf(settings: Settings, { keySource }: Pick<Database, 'keySource'>): Promise<Installation> {
  return {
    railsFile: settings.MIDMONTH_RAILS,
    publicUrl: settings.MIDMONTH_PUBLIC_URL,
    isEmbedded: settings.DATABASE_URL === '',
    retention: retentionOf(settings),
    keyName: await describeKey(keySource),
  }
}

export type Roles = { api: boolean; worker: boolean }

export type Running = {
  /** `http://127.0.0.1:8080`; undefined without the API. */
  address: string | undefined
  /**
   * Shuts down gracefully: fails /readyz, drains, stops accepting requests, finishes running requests and tasks, and closes
   * the database.
   * @param drainMs how long to keep serving while /readyz fails, so that a load balancer takes the process out
   */
  stop(options?: { drainMs?: number }): Promise<void>
}

/**
 * Starts the API, the worker or both on a prepared database. A worker without the API serves health probes on its own port.
 * @throws Error with a message for the operator; only the database is left open
 */
export async function run(
  database: Database,
  {
    settings,
    roles,
    sealer,
    log,
    now,
    tracing,
  }: { settings: Settings; roles: Roles; sealer: Sealer; log: Logger; now: Clock; tracing?: Tracing | undefined },
): Promise<Running> {
  const { db, batchDb, withCopying, pool } = database
  const { HOST: host, PORT: port, MIDMONTH_HEALTH_PORT: healthPort, MIDMONTH_MODE: mode } = settings
  let app: App | undefined
  let listening: Listening | undefined
  let worker: Worker | undefined
  const requestLog =
    roles.api && settings.MIDMONTH_REQUEST_LOG === 'on' ? new RequestLog({ withCopying, log }) : undefined
  const replica = roles.api && settings.MIDMONTH_REPLICA_URL !== '' ? openReplica(settings, log) : undefined
  const stop = async ({ drainMs = 0 } = {}) => {
    await Promise.all([listening?.close({ drainMs }) ?? app?.close(), worker?.stop()])
    await Promise.all([requestLog?.close(), replica?.close()])
  }
  // Checked by every process, so that a fault does not show only at a worker.
  noticeSettingsOf(settings)
  const excess = await describeExcess(db)
  if (excess !== undefined) log.warn(excess)
  try {
    // Imported late and only as needed: these modules are most of the load time.
    const fence = fenceOf(settings)
    const token = settings.MIDMONTH_METRICS_TOKEN
    const metrics = roles.api && token === '' ? undefined : await openMetrics(database, { settings, token, now })
    const context = { db, sealer, log, now, mode, metrics, tracing, trustedProxies: settings.MIDMONTH_TRUST_PROXY }
    const rails = await readRails(settings)
    const channels = await openChannels(settings, { db, log, now, rails })
    app = roles.api
      ? await (await import('./app.ts')).buildApp(
          {
            ...context,
            batchDb,
            withCopying,
            replica: replica && new Replica({ primary: db, replica: replica.db, log }),
            lanes: settings.MIDMONTH_LANES,
            publicUrl: settings.MIDMONTH_PUBLIC_URL || undefined,
            console: await consoleOf(settings),
            bankOf: banksOf(settings, rails),
            recordRequest: requestLog?.record,
            erasures: database.erasures,
          },
          {
            hasDocs: settings.MIDMONTH_DOCS === 'on',
            fence,
            rails,
            channels,
            installation: await installationOf(settings, database),
          },
        )
      : await (await import('./http/server/health.ts')).buildHealthApp(context, {
          isWorking: () => worker?.isWorking() ?? false,
        })
    listening = roles.api
      ? await listen(app, { host, port, setting: 'PORT' })
      : await listenForProbes(app, { host, port: healthPort, log })
    // Best effort: cleanup must not block startup.
    if (roles.api) {
      void import('./http/bodies/uploaded-file.ts')
        .then(({ removeLeftBehind }) => removeLeftBehind())
        .catch(error => log.warn({ err: error }, 'could not delete the upload files of an earlier process'))
    }
    // Only once the port is bound: a process that cannot serve must not take work.
    if (roles.worker) {
      const { startWorker } = await import('./worker.ts')
      const { Sender } = await import('./webhooks/send.ts')
      worker = await startWorker({ db, log, now, tracing }, pool, {
        channels,
        sender: new Sender(fence, { clockMs: Date.now, tracing }),
        realNow: systemClock,
        retention: retentionOf(settings),
        notices: await noticesOf(settings, rails),
        isSandbox: mode === 'sandbox',
        metrics: metrics?.process,
      })
    }
    database.endStart()
    return {
      address: roles.api ? listening?.address : undefined,
      async stop(options) {
        await stop(options)
        await database.close()
      },
    }
  } catch (error) {
    // Best effort: a failing shutdown must not hide the error.
    await Promise.race([stop().catch(() => undefined), pause(closeMsMax, undefined, { ref: false })])
    throw error
  }
}

/** Connects at the first read: a replica that is down must not block a start. */
function openReplica(
  { MIDMONTH_REPLICA_URL: url, MIDMONTH_DATABASE_CONNECTIONS: connectionsMax }: Settings,
  log: Logger,
): Pick<Databases, 'db' | 'close'> {
  return connect(url, { log, connectionsMax })
}

/** Loaded only where metrics are served. */
async function openMetrics(
  { db, pools }: Database,
  { settings, token, now }: { settings: Settings; token: string; now: Clock },
): Promise<MetricsSource> {
  const { ProcessMetrics } = await import('./metrics/process-metrics.ts')
  const { exposeInstallation } = await import('./diagnosis/installation-metrics.ts')
  const retention = retentionOf(settings)
  return {
    process: new ProcessMetrics(pools),
    readInstallation: () => exposeInstallation(db, { mode: settings.MIDMONTH_MODE, retention, now: now() }),
    token,
  }
}

// Closing takes milliseconds, unless the database has just been lost.
const closeMsMax = 3_000

/**
 * Listens for health probes. If the default port is taken, as it is for the second worker on a machine, the worker runs
 * without probes: paying out matters more. A port set by the operator must be free, because a supervisor probes it.
 */
async function listenForProbes(
  app: App,
  { host, port, log }: { host: string; port: number | undefined; log: Logger },
): Promise<Listening | undefined> {
  const setting = 'MIDMONTH_HEALTH_PORT'
  try {
    return await listen(app, { host, port: port ?? defaultHealthPort, setting })
  } catch (error) {
    if (port !== undefined || !(error instanceof ListenProblem) || error.code !== 'EADDRINUSE') throw error
    log.warn(
      { host },
      `Port ${defaultHealthPort} is in use, so this worker runs without health probes; ` +
        `set ${setting} to a free port, or to 0 for any free port`,
    )
    return undefined
  }
}

/**
 * The bank that pays withdrawals in each currency. Depends only on the settings, so that an API process refuses withdrawals that
 * no worker could pay. The simulated bank moves no money, so live mode never uses it.
 */
export function banksOf(
  { MIDMONTH_MODE: mode }: Pick<Settings, 'MIDMONTH_MODE'>,
  rails: readonly Pick<Rail, 'currency'>[],
): ApiContext['bankOf'] {
  const paid = new Set(rails.map(({ currency }) => currency))
  return currency => (paid.has(currency) ? 'connected' : mode === 'sandbox' ? 'simulated' : null)
}

type RailSettings = Pick<Settings, 'MIDMONTH_RAILS' | 'MIDMONTH_MODE'> & Partial<Pick<Settings, 'DATABASE_URL'>>

/**
 * Returns the path of the file with the rails; empty if no bank is connected. A sandbox without settings, as a newcomer starts it,
 * uses the demo's file rail. A sandbox with `DATABASE_URL` is for partners: the simulated bank pays in every currency, without an
 * operator.
 */
function railsFileOf({ MIDMONTH_RAILS: file, MIDMONTH_MODE: mode, DATABASE_URL: database }: RailSettings): string {
  return file === '' && mode === 'sandbox' && database === '' ? demoRails : file
}

const demoRails = fileURLToPath(new URL('sandbox/demo-rails.json', import.meta.url))

/** Reads the rail that the demo fills; undefined if the installation has other rails. */
export async function readDemoRail(settings: RailSettings): Promise<FileRailSettings | undefined> {
  return railsFileOf(settings) === demoRails ? fileRailsOf(await readRails(settings))[0] : undefined
}

/**
 * Reads the rails in MIDMONTH_RAILS, or the demo's.
 * @throws SettingsProblem that names every fault of the file, and every rail that does not fit the mode
 */
export async function readRails(settings: RailSettings): Promise<Rail[]> {
  const file = railsFileOf(settings)
  // Loaded late: every command loads this module.
  return file === '' ? [] : await (await import('./payouts/read-rails.ts')).readRails(file, settings.MIDMONTH_MODE)
}

/** Opens the channels of the rails, and on a sandbox the simulated bank for all other currencies. */
async function openChannels(
  { MIDMONTH_MODE: mode }: Settings,
  { db, log, now, rails }: { db: Db; log: Logger; now: Clock; rails: readonly Rail[] },
): Promise<Channel[]> {
  const channels = await Promise.all(rails.map(rail => rail.openChannel({ db, now })))
  if (mode === 'sandbox') {
    const unpaid = currencies.filter(currency => !rails.some(each => each.currency === currency))
    return [...channels, await openSimulatedBank({ db, now, currencies: rails.length === 0 ? 'rest' : unpaid })]
  }
  if (rails.length === 0)
    log.warn(
      'No bank is connected: withdrawals are refused, held ones can only be cancelled, and no money is paid out; see docs/guides/go-live.md',
    )
  return channels
}

/** @throws SettingsProblem */
async function consoleOf(settings: Settings): Promise<ApiContext['console']> {
  return (await import('./users/settings.ts')).readConsoleSettings(settings)
}

/** The channels by which operators are told what needs attention, and what that depends on. */
async function noticesOf(settings: Settings, rails: readonly Rail[]): Promise<Parameters<typeof noticeTasks>> {
  const notices = noticeSettingsOf(settings)
  const { openNoticeChannels } = await import('./notices/channels.ts')
  const { mode, reminderMs } = notices
  return [
    openNoticeChannels(notices, { clockMs: Date.now }),
    { mode, rails, retention: retentionOf(settings), reminderMs },
  ]
}

/** The targets that webhook deliveries may be sent to. */
function fenceOf(settings: Settings): Fence {
  const { MIDMONTH_MODE: mode, MIDMONTH_WEBHOOK_LOOPBACK: loopback, HOST: host } = settings
  const isLocal = mode === 'sandbox' && /^(localhost|127\.[0-9.]+|::1)$/.test(host)
  const databases = [settings.DATABASE_URL, settings.DATABASE_OWNER_URL, settings.MIDMONTH_REPLICA_URL].filter(
    url => url !== '',
  )
  return new Fence({
    allowsHttp: mode === 'sandbox',
    allowsLoopback: loopback === 'on' || (loopback === 'auto' && isLocal),
    // Resolved by the driver, which also reads PGPORT.
    refusedPorts: [defaultDatabasePort, ...databases.flatMap(addressesOf).map(url => new pg.Client(url).port)],
  })
}

const defaultDatabasePort = 5432
