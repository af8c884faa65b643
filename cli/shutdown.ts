import type { Logger } from 'pino'

const limits = {
  // npm forwards the Ctrl-C that the terminal has already sent us. A second press by hand comes later than this.
  echoMsMax: 1_000,
  // `docker stop` kills the process after ten seconds.
  stopMsMax: 9_000,
  // Time left for running requests after a long drain.
  afterDrainMsMax: 7_000,
  parentCheckMs: 500,
  // Time to close connections after a failed start.
  failedStartMsMax: 5_000,
}

type Stop = (options: { drainMs: number }) => Promise<void>

type Shutdown = {
  /** @param options.farewell printed after a clean stop */
  stopWith(stop: Stop, options: { drainMs: number; farewell: string }): void
  /** Stops as if by signal. */
  stop(): void
}

/**
 * Shuts the process down on a signal, when its output pipe is closed, or on an unexpected error. Running work may finish, within limits.
 * Before `stopWith` is called nothing is running, and the process exits immediately. Only SIGTERM drains: it comes from a supervisor, which
 * may have a load balancer in front of the service.
 *
 * The exit code is 0 after a requested, clean stop, and 1 otherwise.
 */
export function handleShutdown(log: Logger): Shutdown {
  let stopGracefully: Stop = async () => {}
  let supervisedDrainMs = 0
  let farewell: string | undefined
  let stoppingSinceMs: number | undefined

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // A second signal means "now". The embedded PostgreSQL stops once we have exited.
      if (stoppingSinceMs !== undefined && performance.now() - stoppingSinceMs > limits.echoMsMax) process.exit(1)
      if (stoppingSinceMs === undefined) log.info({ signal }, 'stopping')
      end(0, { isSupervised: signal === 'SIGTERM' })
    })
  }
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A full disk loses the banner, not the service.
    if (error.code !== 'EPIPE') return log.warn({ err: error }, 'cannot write to standard output')
    if (stoppingSinceMs === undefined) log.warn('standard output was closed: stopping')
    end(0)
  })
  // Node writes its own warnings here, bypassing the log.
  process.stderr.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') end(0)
  })
  // npm, and the launcher under Node 20, can be killed without forwarding a signal, which would leave an orphaned service
  // behind that holds the port.
  const parent = process.ppid
  const isLaunched = process.env.LAUNCHER_PID === String(parent)
  if (isLaunched || process.env.npm_lifecycle_event !== undefined) {
    setInterval(() => {
      if (process.ppid === parent || stoppingSinceMs !== undefined) return
      log.warn(`${isLaunched ? 'the launcher' : 'npm'} has exited: stopping`)
      end(0)
    }, limits.parentCheckMs).unref()
  }
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(event, (error: unknown) => {
      log.fatal({ err: error }, 'unexpected error: stopping')
      end(1)
    })
  }
  return {
    stopWith(stop, options) {
      stopGracefully = stop
      supervisedDrainMs = options.drainMs
      farewell = options.farewell
    },
    stop: () => end(0),
  }

  function end(exitCode: 0 | 1, { isSupervised = false } = {}): void {
    if (stoppingSinceMs !== undefined) return
    stoppingSinceMs = performance.now()
    const drainMs = isSupervised ? supervisedDrainMs : 0
    const stopMsMax = Math.max(limits.stopMsMax, drainMs + limits.afterDrainMsMax)
    setTimeout(() => {
      log.error(`still running after ${stopMsMax / 1_000} s: forcing exit`)
      process.exit(1)
    }, stopMsMax).unref()
    stopGracefully({ drainMs }).then(
      () => {
        log.flush()
        if (exitCode === 0 && farewell !== undefined) console.log(farewell)
        process.exit(exitCode)
      },
      error => {
        log.error({ err: error }, 'shutdown failed')
        process.exit(1)
      },
    )
  }
}

/**
 * Forces exit code 1 soon after a failed start, even if something is still open: a process that neither serves nor exits is
 * never restarted by its supervisor. A process that exits earlier has flushed its output.
 */
export function exitAfterFailedStart(): void {
  setTimeout(() => process.exit(1), limits.failedStartMsMax).unref()
}
