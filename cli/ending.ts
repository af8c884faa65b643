import type { Logger } from 'pino'

const limits = {
  // npm passes on the Ctrl-C that the terminal has sent us already; a person who presses it again is slower.
  echoMsMax: 1_000,
  // `docker stop` kills after ten seconds; what runs longer than this would be cut off in any case.
  stopMsMax: 9_000,
  parentCheckMs: 500,
}

type Ending = {
  /** @param farewell printed at the end of a stop that was asked for */
  stopWith(stop: () => Promise<void>, farewell: string): void
  /** Stops as if the operator had asked for it. */
  stop(): void
}

/**
 * Ends the process when it is told to, when the pipe that it writes to is closed, or when something unexpected has happened:
 * running work may end, within limits. Until `stopWith` has said how, nothing runs, and the end is immediate.
 *
 * The exit code is 0 for an end that was asked for, and 1 for any other and for one that had to be forced.
 */
export function awaitTheEnd(log: Logger): Ending {
  let stopGracefully = async () => {}
  let farewell: string | undefined
  let askedAtMs: number | undefined

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // Asked again by somebody who does not want to wait. The embedded PostgreSQL stops by itself when we are gone.
      if (askedAtMs !== undefined && performance.now() - askedAtMs > limits.echoMsMax) process.exit(1)
      if (askedAtMs === undefined) log.info({ signal }, 'stopping')
      end(0)
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
  // npm can be killed without a word to us, and nobody would know of what it has left running.
  const parent = process.ppid
  if (process.env.npm_lifecycle_event !== undefined) {
    setInterval(() => {
      if (process.ppid === parent || askedAtMs !== undefined) return
      log.warn('npm has gone: stopping')
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
    stopWith(stop, words) {
      stopGracefully = stop
      farewell = words
    },
    stop: () => end(0),
  }

  function end(exitCode: 0 | 1): void {
    if (askedAtMs !== undefined) return
    askedAtMs = performance.now()
    setTimeout(() => {
      log.error(`still not stopped after ${limits.stopMsMax / 1_000} s: what is running is cut off`)
      process.exit(1)
    }, limits.stopMsMax).unref()
    stopGracefully().then(
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
