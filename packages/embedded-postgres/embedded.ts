import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { prepareCluster } from './cluster.ts'
import { isArchived, requestSettings, serveRequests, type WalCommands } from './requests.ts'
import type { Names } from './roles.ts'
import { acquireLease, connectionTo, endConnection, joinOrStart, releaseLease } from './server.ts'

type Connection = { host: string; port: number; user: string; database: string; ssl: false }

export type EmbeddedPostgres = {
  /**
   * For pg, as the service's role, over a Unix socket that only the server's user and root can reach. Stays the same when the
   * server is restarted.
   */
  connection: Connection
  /** The same connection as the role that owns the database, for migrations. */
  ownerConnection: Connection
  /** The same connection as the superuser of the server, for backups. */
  superuserConnection: Connection
  /** The data folder in use. */
  dataDir: string
  /** The folder of the database cluster in it, PGDATA. */
  pgdata: string
  /** A command for operators to query the database with a read-only role. */
  psqlHint: string
  /**
   * Releases the server. The last process to do so shuts the server down (a clean, fast shutdown) and waits until it has ended. Close
   * pools first: a fast shutdown terminates open connections.
   */
  stop(): Promise<void>
}

type StartOptions = {
  names: Names
  dataDir?: string
  checkoutDir: string
  mayCreate?: boolean
  onCreate?: (dataDir: string) => void
  settings?: Record<string, string>
  wal?: WalCommands
  onProgress?: (step: string) => void
  onLost?: (reason: string) => void
  onBack?: () => void
}

/**
 * Starts the embedded PostgreSQL, or joins the server that another process runs on the same folder. The server runs until the
 * last process that uses it stops or dies, even by kill -9. If the server dies, it is restarted.
 * @param options.dataDir the folder that the operator configured; by default `data` in the checkout, or a folder below /var/lib
 *   if PostgreSQL's user cannot enter the checkout
 * @param options.mayCreate false for a read-only command: throws if there is no database
 * @param options.onCreate called before a database is created; throws to refuse that
 * @param options.settings for postgres; ignored if the server is already running
 * @param options.wal archives the WAL of the server, or restores it: then the cluster is in recovery, however long that takes. Once the
 *   WAL of a cluster is archived, each later start archives it too, and keeps segments until a process serves that
 * @param options.onProgress called before each step that takes noticeable time
 * @param options.onLost called when the server is lost, and after each failed attempt to restart it
 * @param options.onBack called when a lost server responds again
 * @throws EmbeddedPostgresProblem
 */
export async function startEmbeddedPostgres({
  settings: given = {},
  wal,
  onProgress = () => undefined,
  onLost = () => undefined,
  onBack = () => undefined,
  ...where
}: StartOptions): Promise<EmbeddedPostgres> {
  const cluster = await prepareCluster({ ...where, onProgress })
  const isRestoring = wal?.restore !== undefined
  const archives = wal?.archive !== undefined || (!isRestoring && isArchived(cluster))
  const settings = {
    ...(isRestoring || archives ? requestSettings(cluster, { restores: isRestoring, archives }) : {}),
    ...given,
  }
  const lease = acquireLease(cluster)
  const serving = wal && serveRequests(cluster, wal)
  const leaving = new AbortController()
  const joining = { lease, settings, isRestoring, leaving: leaving.signal, onProgress }
  let watch: pg.Client
  try {
    watch = await joinOrStart(cluster, joining)
  } catch (problem) {
    await releaseLease(cluster, lease)
    await serving?.stop()
    throw problem
  }

  let rejoining: Promise<void> | undefined
  let stopping: Promise<void> | undefined
  rejoinWhenLost()

  const { host, port, user, database } = connectionTo(cluster, 'read')
  return {
    connection: connectionTo(cluster, 'app'),
    ownerConnection: connectionTo(cluster, 'owner'),
    superuserConnection: connectionTo(cluster, 'superuser'),
    dataDir: cluster.dataDir,
    pgdata: cluster.pgdata,
    psqlHint: `psql -h ${host} -p ${port} -U ${user} ${database}`,
    stop() {
      stopping ??= stop()
      return stopping
    },
  }

  async function stop(): Promise<void> {
    leaving.abort()
    await rejoining
    await endConnection(watch)
    // The server archives the rest of its WAL before it ends.
    await releaseLease(cluster, lease)
    await serving?.stop()
  }

  function rejoinWhenLost(): void {
    let reason = 'the connection ended'
    watch.once('error', error => {
      reason = error.message
    })
    watch.once('end', () => {
      if (!leaving.signal.aborted) rejoining = rejoin(reason)
    })
  }

  /** Retries until the server is back: the process is useless without its database. */
  async function rejoin(reason: string): Promise<void> {
    onLost(reason)
    for (let pauseMs = 100; !leaving.signal.aborted; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
      try {
        watch = await joinOrStart(cluster, joining)
        rejoinWhenLost()
        onBack()
        return
      } catch (problem) {
        if (leaving.signal.aborted) return
        onLost(problem instanceof Error ? problem.message : String(problem))
      }
      // Jitter, so that several processes do not start a server at the same time.
      await pause(pauseMs * (0.5 + Math.random() / 2), undefined, { signal: leaving.signal }).catch(() => undefined)
    }
  }
}

// 10 s: short enough after an operator has freed a full disk, long enough not to fill the log.
const pauseMsMax = 10_000
