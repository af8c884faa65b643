import { createRequire } from 'node:module'
import pino, { type Logger } from 'pino'
import type { PrettyOptions } from 'pino-pretty'
import type { Settings } from '../src/config.ts'
import { LogDestination } from './log-destination.ts'

// A quiet service's last line is on the screen before the eye is.
const bufferedMsMax = 200

// Pino's number of the level `warn`.
const warning = 40

/**
 * Structured logs on standard error: JSON, or readable lines on a terminal. Lines of requests are written together; a warning
 * or worse is written at once, with all that came before it, as is the last line before an end. Lines are lost when the
 * process is killed, and rather than wait for a disk without room or a reader that has stalled.
 * @param onReaderGone called once when the pipe was closed at its other end
 */
export function openLog(
  level: Settings['OPENWAGE_LOG_LEVEL'],
  { onReaderGone = () => {} }: { onReaderGone?: () => void } = {},
): Logger {
  const destination = new LogDestination(2, {
    ...(process.stderr.isTTY ? { format: readable() } : {}),
    lossLine,
    onReaderGone,
  })
  setInterval(() => destination.flush(), bufferedMsMax).unref()
  process.on('exit', () => destination.flushBeforeExit())
  return pino(
    {
      ...options,
      level,
      hooks: {
        logMethod(line, write, severity) {
          write.apply(this, line)
          // A person at a terminal waits for every line, above all while the first start takes its time.
          if (severity >= warning || process.stderr.isTTY) destination.flush()
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
    'log lines were lost: standard error could not be written',
  )
  return written
}

/** For a person at a terminal: the time of day, no process id, and a request in a few words. */
function readable(): (line: string) => string {
  // Only a terminal needs it, and loading it takes as long as ten modules of ours.
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
 * What may be logged of an error. PostgreSQL's `detail` and `where` hold rows (a unique violation quotes the e-mail
 * address), so what is logged is named here, and everything else is left out.
 */
export function withoutPersonalData(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error }
  const { code, constraint } = error as { code?: unknown; constraint?: unknown }
  return {
    type: error.constructor.name,
    message: quotesValues(code) ? 'PostgreSQL cannot read a value' : error.message,
    code,
    constraint,
    // Only the frames: the first lines repeat the message.
    stack: error.stack?.match(/^ {4}at .+$/gm)?.join('\n'),
    ...(error.cause === undefined ? {} : { cause: withoutPersonalData(error.cause) }),
    ...(error instanceof AggregateError ? { errors: error.errors.map(withoutPersonalData) } : {}),
  }
}

// Class 22, data exceptions: "invalid input syntax for type date: …" quotes what was given.
function quotesValues(code: unknown): boolean {
  return typeof code === 'string' && /^22[0-9A-Z]{3}$/.test(code)
}
