import type { Logger } from 'pino'

const limits = {
  // npm passes on the Ctrl-C that the terminal has sent us already; a person who presses it again is slower.
  echoMsMax: 1_000,
  // `docker stop` kills after ten seconds; what runs longer than this would be cut off in any case.
  stopMsMax: 9_000,
  // What running requests get at least after a drain that the operator has made longer.
  afterDrainMsMax: 7_000,
  parentCheckMs: 500,
  // Connections that are being closed are given this long.
  failedStartMsMax: 5_000,
}

type Stop = (options: { drainMs: number }) => Promise<void>

type Ending = {
  /** @param options.farewell printed at the end of a stop that was asked for */
  stopWith(stop: Stop, options: { drainMs: number; farewell: string }): void
  /** Stops as if the operator had asked for it. */
  stop(): void
}

/**
 * Ends the process when it is told to, when the pipe that it writes to is closed, or when something unexpected has happened:
 * running work may end, within limits. Until `stopWith` has said how, nothing runs, and the end is immediate. SIGTERM comes
 * from a supervisor, which may have a load balancer beside it: only then is there a drain.
 *
 * The exit code is 0 for an end that was asked for, and 1 for any other and for one that had to be forced.
 */
export function awaitTheEnd(log: Logger): Ending {
  let stopGracefully: Stop = async () => {}
  let supervisedDrainMs = 0
  let farewell: string | undefined
  let askedAtMs: number | undefined

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // Asked again by somebody who does not want to wait. The embedded PostgreSQL stops by itself when we are gone.
      if (askedAtMs !== undefined && performance.now() - askedAtMs > limits.echoMsMax) process.exit(1)
      if (askedAtMs === undefined) log.info({ signal }, 'stopping')
      // A supervisor says SIGTERM, and has a load balancer beside it; a person at a terminal has not.
      end(0, { isSupervised: signal === 'SIGTERM' })
    })
  }
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A full disk loses the greeting, not the service.
    if (error.code !== 'EPIPE') return log.warn({ err: error }, 'standard output could not be written')
    if (askedAtMs === undefined) log.warn('nobody reads standard output: stopping')
    end(0)
  })
  // Node writes its own warnings here, past the log.
  process.stderr.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') end(0)
  })
  // npm, and the launcher under an old Node, can be killed without a signal to us; what runs on would keep the port.
  const parent = process.ppid
  const isLaunched = process.env.LAUNCHER_PID === String(parent)
  if (isLaunched || process.env.npm_lifecycle_event !== undefined) {
    setInterval(() => {
      if (process.ppid === parent || askedAtMs !== undefined) return
      log.warn(`${isLaunched ? 'the launcher' : 'npm'} has gone: stopping`)
      end(0)
    }, limits.parentCheckMs).unref()
  }
  for (const fault of ['uncaughtException', 'unhandledRejection'] as const) {
    process.on(fault, (error: unknown) => {
      log.fatal({ err: error }, 'an unexpected fault: stopping')
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
    if (askedAtMs !== undefined) return
    askedAtMs = performance.now()
    const drainMs = isSupervised ? supervisedDrainMs : 0
    const stopMsMax = Math.max(limits.stopMsMax, drainMs + limits.afterDrainMsMax)
    setTimeout(() => {
      log.error(`still not stopped after ${stopMsMax / 1_000} s: what is running is cut off`)
      process.exit(1)
    }, stopMsMax).unref()
    stopGracefully({ drainMs }).then(
      () => {
        log.flush()
        if (exitCode === 0 && farewell !== undefined) console.log(farewell)
        process.exit(exitCode)
      },
      error => {
        log.error({ err: error }, 'stopping failed')
        process.exit(1)
      },
    )
  }
}

/**
 * Ends the process with exit code 1 after a failed start, whatever is still open: a process that neither serves nor ends is
 * never restarted by its supervisor. What ends by itself before then has flushed its output.
 */
export function endFailedStart(): void {
  setTimeout(() => process.exit(1), limits.failedStartMsMax).unref()
}
