import pino, { type Logger } from 'pino'
import type { Settings } from '../src/config.ts'

/** Structured logs on standard error, written at once: the last line before an end is the one that is needed. */
export function openLog(level: Settings['OPENWAGE_LOG_LEVEL']): Logger {
  return pino(
    {
      level,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
      serializers: { err: withoutPersonalData, error: withoutPersonalData },
    },
    pino.destination({ dest: 2, sync: true }),
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
