import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import { systemClock } from './clock.ts'
import { defaultHealthPort, type Settings } from './config.ts'
import { connect, type Databases } from './database/connect.ts'
import { lanesOf } from './database/database.ts'
import { describeExcess } from './database/grants.ts'
import { addressesOf } from './database/hosts.ts'
import { Replica } from './database/replica.ts'
import { type Listening, ListenProblem, listen } from './http/server/listening.ts'
import type { ApiContext, App } from './http/server/server.ts'
import { retentionOf } from './kernel/retention.ts'
import type { Clock } from './kernel/time.ts'
import type { MetricsSource } from './metrics/metrics-source.ts'
import { noticeSettingsOf } from './notices/settings.ts'
import type { Database } from './open-database.ts'
import type { Installation, InstallationContext } from './operators/operation-context.ts'
import type { Channel } from './payouts/channels/channel.ts'
import { banksOn, type Rail } from './payouts/channels/rail.ts'
import { banksOf, openChannels, readRails } from './rails.ts'
import { RequestLog } from './requests/recorder.ts'
import { describeKey } from './sealing/key-providers.ts'
import type { Sealer } from './sealing/sealer.ts'
import type { noticeTasks } from './tasks.ts'
import type { Tracing } from './tracing/tracing.ts'
import { Fence } from './webhooks/fence.ts'
import type { Worker } from './worker.ts'

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
  options: { settings: Settings; roles: Roles; sealer: Sealer; log: Logger; now: Clock; tracing?: Tracing | undefined },
): Promise<Running> {
  const { settings, roles, log } = options
  // Checked by every process, so that a fault does not show only at a worker.
  noticeSettingsOf(settings)
  const excess = await describeExcess(database.db)
  if (excess !== undefined) log.warn(excess)
  const parts = new Parts()
  try {
    const rails = await readRails(settings)
    const channels = await openChannels(settings, { ...options, db: database.db, rails })
    const metrics = await openMetrics(database, options)
    const started: Started = { ...options, database, rails, channels, fence: fenceOf(settings), metrics }
    if (roles.api) await startApi(parts, started)
    else await startProbes(parts, started)
    // Only once the port is bound: a process that cannot serve must not take work.
    if (roles.worker) await startWork(parts, started)
    database.endStart()
    return {
      address: roles.api ? parts.listening?.address : undefined,
      async stop(options) {
        await parts.stop(options)
        await database.close()
      },
    }
  } catch (error) {
    // Best effort: a failing shutdown must not hide the error.
    await Promise.race([parts.stop().catch(() => undefined), pause(closeMsMax, undefined, { ref: false })])
    throw error
  }
}

type Started = Parameters<typeof run>[1] & {
  database: Database
  rails: readonly Rail[]
  channels: Channel[]
  fence: Fence
  metrics: MetricsSource | undefined
}

/** What runs in this process, and must be stopped. */
class Parts {
  app: App | undefined
  listening: Listening | undefined
  worker: Worker | undefined
  requestLog: RequestLog | undefined
  replica: Pick<Databases, 'db' | 'close'> | undefined

  async stop({ drainMs = 0 } = {}): Promise<void> {
    await Promise.all([this.listening?.close({ drainMs }) ?? this.app?.close(), this.worker?.stop()])
    await Promise.all([this.requestLog?.close(), this.replica?.close()])
  }
}

// The functions below import late and only as needed: these modules are most of the load time.

async function startApi(parts: Parts, started: Started): Promise<void> {
  const { settings, database, rails, channels, fence, log } = started
  const { db, batchDb, withCopying } = database
  if (settings.MIDMONTH_REQUEST_LOG === 'on') parts.requestLog = new RequestLog({ withCopying, log })
  // Connects at the first read: a replica that is down must not block a start.
  if (settings.MIDMONTH_REPLICA_URL !== '')
    parts.replica = connect(settings.MIDMONTH_REPLICA_URL, {
      lanes: lanesOf(db),
      log,
      connectionsMax: settings.MIDMONTH_DATABASE_CONNECTIONS,
    })
  const { buildApp } = await import('./app.ts')
  parts.app = await buildApp(
    {
      ...contextOf(started),
      batchDb,
      withCopying,
      replica: parts.replica && new Replica({ primary: db, replica: parts.replica.db, log }),
      publicUrl: settings.MIDMONTH_PUBLIC_URL || undefined,
      console: await consoleOf(settings),
      bankOf: banksOf(settings, rails),
      recordRequest: parts.requestLog?.record,
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
  parts.listening = await listen(parts.app, { host: settings.HOST, port: settings.PORT, setting: 'PORT' })
  // Best effort: cleanup must not block startup.
  void import('./http/bodies/uploaded-file.ts')
    .then(({ removeLeftBehind }) => removeLeftBehind())
    .catch(error => log.warn({ err: error }, 'could not delete the upload files of an earlier process'))
}

async function startProbes(parts: Parts, started: Started): Promise<void> {
  const { buildHealthApp } = await import('./http/server/health.ts')
  parts.app = await buildHealthApp(contextOf(started), { isWorking: () => parts.worker?.isWorking() ?? false })
  parts.listening = await listenForProbes(parts.app, started)
}

function contextOf({ settings, database: { db }, sealer, log, now, metrics, tracing }: Started) {
  const { MIDMONTH_MODE: mode, MIDMONTH_TRUST_PROXY: trustedProxies } = settings
  return { db, sealer, log, now, mode, metrics, tracing, trustedProxies }
}

async function startWork(parts: Parts, started: Started): Promise<void> {
  const { settings, database, rails, channels, fence, metrics, log, now, tracing } = started
  const { startWorker } = await import('./worker.ts')
  const { Sender } = await import('./webhooks/send.ts')
  parts.worker = await startWorker({ db: database.db, log, now, tracing }, database.pool, {
    channels,
    sender: new Sender(fence, { clockMs: Date.now, tracing }),
    realNow: systemClock,
    retention: retentionOf(settings),
    notices: await noticesOf(settings, rails),
    isSandbox: settings.MIDMONTH_MODE === 'sandbox',
    metrics: metrics?.process,
  })
}

/** The API serves metrics only behind a token. */
async function openMetrics(
  { db, pools }: Database,
  { settings, roles, now }: Pick<Started, 'settings' | 'roles' | 'now'>,
): Promise<MetricsSource | undefined> {
  const token = settings.MIDMONTH_METRICS_TOKEN
  if (roles.api && token === '') return undefined
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
  { settings: { HOST: host, MIDMONTH_HEALTH_PORT: port }, log }: Pick<Started, 'settings' | 'log'>,
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
