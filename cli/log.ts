import pino, { type Logger } from 'pino'
import type { Settings } from '../src/config.ts'

const limits = {
  // A page: a write costs as much as ten lines of text, and one request is one line.
  bufferedBytes: 4_096,
  // A quiet service's last line is on the screen before the eye is.
  bufferedMsMax: 200,
}

// Pino's number of the level `warn`.
const warning = 40

/**
 * Structured logs on standard error. Lines of requests are written together; a warning or worse is written at once, with
 * all that came before it, as is the last line before an end. Only a kill can lose the lines of the last moment.
 */
export function openLog(level: Settings['OPENWAGE_LOG_LEVEL']): Logger {
  const destination = pino.destination({ dest: 2, sync: true, minLength: limits.bufferedBytes })
  const flush = () => destination.flushSync()
  // Without waiting for the disk, which only what is urgent is worth.
  setInterval(() => destination.flush(), limits.bufferedMsMax).unref()
  process.on('exit', flush)
  return pino(
    {
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      serializers: { err: withoutPersonalData, error: withoutPersonalData },
      hooks: {
        logMethod(line, write, severity) {
          write.apply(this, line)
          if (severity >= warning) flush()
        },
      },
    },
    destination,
  )
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
