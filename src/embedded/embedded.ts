import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { prepareCluster } from './cluster.ts'
import { EmbeddedPostgresProblem } from './problem.ts'
import { acquireLease, connectionTo, endConnection, joinOrStart, releaseLease } from './server.ts'

export { EmbeddedPostgresProblem }

type Connection = { host: string; port: number; user: string; database: string; ssl: false }

export type EmbeddedPostgres = {
  /** For pg, as the role that the service runs as: over a Unix socket that only the server's user and root can reach. It stays the same when the server is replaced. */
  connection: Connection
  /** The same, as the role that owns the database: for migrations. */
  ownerConnection: Connection
  /** The folder that is really used. */
  dataDir: string
  /** A command that an operator may paste to look inside, as a role that can change nothing. */
  psqlHint: string
  /**
   * Leaves. The last user takes the server down (a clean, fast shutdown) and waits until it has gone; any other one only
   * lets go. Close pools before: a fast shutdown cuts off what is still connected.
   */
  stop(): Promise<void>
}

/**
 * Starts the embedded PostgreSQL, or joins the one that another process runs on the same folder. It lives until its
 * last user stops or dies, in whatever way, and while we use it, it is brought back when it dies.
 * @param options.dataDir what the operator asked for; without it `data` in the checkout, or a folder below /var/lib
 *   where PostgreSQL's user cannot enter the checkout
 * @param options.mayCreate false for a command that only looks: without a database it then throws
 * @param options.settings for postgres; they hold only when this call starts the server, not when it joins
 * @param options.onProgress told of each step that takes noticeable time
 * @param options.onLost told when the server is lost, and again each time that it could not be brought back
 * @param options.onBack told when a lost server answers again
 * @throws EmbeddedPostgresProblem
 */
export async function startEmbeddedPostgres({
  settings = {},
  onLost = () => undefined,
  onBack = () => undefined,
  ...where
}: {
  dataDir?: string
  checkoutDir: string
  mayCreate?: boolean
  settings?: Record<string, string>
  onProgress?: (step: string) => void
  onLost?: (reason: string) => void
  onBack?: () => void
}): Promise<EmbeddedPostgres> {
  const cluster = await prepareCluster(where)
  const lease = acquireLease(cluster)
  const leaving = new AbortController()
  let watch: pg.Client
  try {
    watch = await joinOrStart(cluster, { lease: lease, settings, leaving: leaving.signal })
  } catch (problem) {
    await releaseLease(cluster, lease)
    throw problem
  }

  let bringingBack: Promise<void> | undefined
  let stopping: Promise<void> | undefined
  bringBackWhenLost()

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
    await bringingBack
    await endConnection(watch)
    await releaseLease(cluster, lease)
  }

  function bringBackWhenLost(): void {
    let reason = 'the connection ended'
    watch.once('error', error => {
      reason = error.message
    })
    watch.once('end', () => {
      if (!leaving.signal.aborted) bringingBack = bringBack(reason)
    })
  }

  /** Never gives up, because nothing else would try: without its database this process is of no use. */
  async function bringBack(reason: string): Promise<void> {
    onLost(reason)
    for (let pauseMs = 100; !leaving.signal.aborted; pauseMs = Math.min(pauseMs * 2, pauseMsMax)) {
      try {
        watch = await joinOrStart(cluster, { lease: lease, settings, leaving: leaving.signal })
        bringBackWhenLost()
        onBack()
        return
      } catch (problem) {
        if (leaving.signal.aborted) return
        onLost(problem instanceof Error ? problem.message : String(problem))
      }
      // Jitter, so that several users do not all start a server in the same moment.
      await pause(pauseMs * (0.5 + Math.random() / 2), undefined, { signal: leaving.signal }).catch(() => undefined)
    }
  }
}

// 10 s: soon enough after an operator has made room on a full disk, seldom enough not to fill its log.
const pauseMsMax = 10_000
