import { createRequire } from 'node:module'
import pino, { type Logger } from 'pino'
import type { PrettyOptions } from 'pino-pretty'
import type { Settings } from '../src/config.ts'
import type { Tracing } from '../src/tracing/tracing.ts'
import { LogDestination } from './log-destination.ts'
import { terminal } from './terminal.ts'

// Short enough that the last line of a quiet service shows up without noticeable delay.
const bufferedMsMax = 200

// Pino's number for `warn`.
const warnLevel = 40

/**
 * Structured logs on standard error: JSON, or readable lines on a terminal. Request lines are buffered; a warning or worse flushes the
 * buffer immediately, and so does a normal exit. Lines are lost if the process is killed, and dropped while the disk is full or the reader
 * is stalled.
 * @param onReaderGone called once, when the other end of the pipe is closed
 * @param tracing names the current trace in each line
 */
export function openLog(
  level: Settings['MIDMONTH_LOG_LEVEL'],
  { onReaderGone = () => {}, tracing }: { onReaderGone?: () => void; tracing?: Tracing | undefined } = {},
): Logger {
  const { stderr } = terminal()
  const mixin = tracing === undefined ? {} : { mixin: () => tracing.logFields() }
  // Only the process's own standard error can block it, and only with many lines.
  if (stderr !== process.stderr) return pino({ ...options, ...mixin, level }, stderr)
  const destination = new LogDestination(2, {
    ...(stderr.isTTY ? { format: readable() } : {}),
    lossLine,
    onReaderGone,
  })
  setInterval(() => destination.flush(), bufferedMsMax).unref()
  process.on('exit', () => destination.flushBeforeExit())
  return pino(
    {
      ...options,
      ...mixin,
      level,
      hooks: {
        logMethod(line, write, severity) {
          write.apply(this, line)
          // On a terminal, progress must show at once, above all during a slow first start.
          if (severity >= warnLevel || stderr.isTTY) destination.flush()
        },
      },
    },
    destination,
  )
}

const options = {
  timestamp: pino.stdTimeFunctions.isoTime,
  formatters: { level: (label: string) => ({ level: label }) },
  serializers: { err: withoutPersonalData, error: withoutPersonalData },
} satisfies pino.LoggerOptions

function lossLine(lines: number): string {
  let written = ''
  pino(options, { write: line => (written = line) }).warn(
    { lines },
    'log lines were lost: standard error was not writable',
  )
  return written
}

/** Terminal format: time of day, no process id, one short line per request. */
function readable(): (line: string) => string {
  // Loaded only for a terminal: it is slow to load.
  const { prettyFactory } = createRequire(import.meta.url)('pino-pretty') as {
    prettyFactory(options: PrettyOptions): (line: object) => string
  }
  const pretty = prettyFactory({
    colorize: process.stderr.hasColors(),
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'pid,hostname',
    singleLine: true,
  })
  return line => {
    const fields = JSON.parse(line)
    if (fields.msg !== 'request') return pretty(fields)
    const { level, time, method, route, status, ms } = fields
    return pretty({ level, time, msg: `${method} ${route} ${status} in ${ms} ms` })
  }
}

/**
 * The loggable parts of an error. PostgreSQL's `detail` and `where` quote rows (a unique violation quotes the email
 * address), so only the fields listed here are logged.
 */
export function withoutPersonalData(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error }
  const { code, constraint } = error as { code?: unknown; constraint?: unknown }
  return {
    type: error.constructor.name,
    message: quotesValues(code) ? 'PostgreSQL rejected a value' : error.message,
    code,
    constraint,
    // Only the frames: the first lines repeat the message.
    stack: error.stack?.match(/^ {4}at .+$/gm)?.join('\n'),
    ...(error.cause === undefined ? {} : { cause: withoutPersonalData(error.cause) }),
    ...(error instanceof AggregateError ? { errors: error.errors.map(withoutPersonalData) } : {}),
  }
}

// Class 22, data exceptions: "invalid input syntax for type date: …" quotes the input.
function quotesValues(code: unknown): boolean {
  return typeof code === 'string' && /^22[0-9A-Z]{3}$/.test(code)
}
