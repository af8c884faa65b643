import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { prepareCluster } from './cluster.ts'
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
  /** The data folder in use. */
  dataDir: string
  /** A command for operators to query the database with a read-only role. */
  psqlHint: string
  /**
   * Releases the server. The last process to do so shuts the server down (a clean, fast shutdown) and waits until it has ended. Close
   * pools first: a fast shutdown terminates open connections.
   */
  stop(): Promise<void>
}

/**
 * Starts the embedded PostgreSQL, or joins the server that another process runs on the same folder. The server runs until the
 * last process that uses it stops or dies, even by kill -9. If the server dies, it is restarted.
 * @param options.dataDir the folder that the operator configured; by default `data` in the checkout, or a folder below /var/lib
 *   if PostgreSQL's user cannot enter the checkout
 * @param options.mayCreate false for a read-only command: throws if there is no database
 * @param options.settings for postgres; ignored if the server is already running
 * @param options.onProgress called before each step that takes noticeable time
 * @param options.onLost called when the server is lost, and after each failed attempt to restart it
 * @param options.onBack called when a lost server responds again
 * @throws EmbeddedPostgresProblem
 */
export async function startEmbeddedPostgres({
  settings = {},
  onProgress = () => undefined,
  onLost = () => undefined,
  onBack = () => undefined,
  ...where
}: {
  names: Names
  dataDir?: string
  checkoutDir: string
  mayCreate?: boolean
  settings?: Record<string, string>
  onProgress?: (step: string) => void
  onLost?: (reason: string) => void
  onBack?: () => void
}): Promise<EmbeddedPostgres> {
  const cluster = await prepareCluster({ ...where, onProgress })
  const lease = acquireLease(cluster)
  const leaving = new AbortController()
  let watch: pg.Client
  try {
    watch = await joinOrStart(cluster, { lease, settings, leaving: leaving.signal, onProgress })
  } catch (problem) {
    await releaseLease(cluster, lease)
    throw problem
  }

  let rejoining: Promise<void> | undefined
  let stopping: Promise<void> | undefined
  rejoinWhenLost()

  const { host, port, user, database } = connectionTo(cluster, 'read')
  return {
    connection: connectionTo(cluster, 'app'),
    ownerConnection: connectionTo(cluster, 'owner'),
    dataDir: cluster.dataDir,
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
    await releaseLease(cluster, lease)
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
        watch = await joinOrStart(cluster, { lease, settings, leaving: leaving.signal, onProgress })
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
