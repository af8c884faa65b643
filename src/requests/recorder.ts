import { pipeline } from 'node:stream/promises'
import type { Logger } from 'pino'
import type { WithCopying } from '../database/copy.ts'
import { sql } from '../database/database.ts'
import { Deadline } from '../deadline.ts'
import { newId } from '../ids.ts'
import type { RecordRequest, RequestRecord } from '../request-record.ts'

const limits = {
  // A request shows up in the log within about this time.
  flushEveryMs: 1_000,
  // Two seconds of the busiest process measured; at up to 2 KB each, 40 MB.
  waitingMax: 20_000,
  // A partner far beyond its rate limit must not fill the disk. As many as it may send by default.
  rateLimitedPerFlushMax: 100,
  // A database that is slower than this is overloaded, and requests come first.
  flushMsMax: 5_000,
  closeMsMax: 2_000,
  // An outage drops entries for as long as it lasts.
  warnEveryMs: 10_000,
}

/**
 * Writes the request log in the background: `record` adds a line to a bounded buffer, which is copied to the database every
 * second. Entries are dropped, and counted in the program's log, if the database does not keep up; they are lost in a crash.
 */
export class RequestLog {
  readonly #withCopying: WithCopying
  readonly #log: Logger
  readonly #timer: NodeJS.Timeout
  #lines: string[] = []
  readonly #rateLimited = new Map<string, number>()
  #flushing: Promise<void> | undefined
  #dropped = 0
  #lastError: unknown
  #warnedAtMs = Number.NEGATIVE_INFINITY

  constructor({ withCopying, log }: { withCopying: WithCopying; log: Logger }) {
    this.#withCopying = withCopying
    this.#log = log
    this.#timer = setInterval(() => {
      if (this.#flushing === undefined) void this.flush()
    }, limits.flushEveryMs).unref()
  }

  readonly record: RecordRequest = record => {
    if (record.status === 429 && this.#isFlood(record.partnerId)) return
    if (this.#lines.length >= limits.waitingMax) this.#dropped += 1
    else this.#lines.push(lineOf(record))
  }

  /** Writes what was recorded so far. Never throws. */
  async flush(): Promise<void> {
    // One at a time: a slow database must not be sent more.
    while (this.#flushing !== undefined) await this.#flushing
    this.#rateLimited.clear()
    const lines = this.#lines
    if (lines.length > 0) {
      this.#lines = []
      this.#flushing = this.#write(lines)
        .catch(error => {
          this.#dropped += lines.length
          this.#lastError = error
        })
        .finally(() => {
          this.#flushing = undefined
        })
      await this.#flushing
    }
    this.#warn()
  }

  /** Writes the rest, unless the database is too slow. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    const { promise: tooLate, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, limits.closeMsMax)
    await Promise.race([this.flush(), tooLate])
    clearTimeout(timer)
    this.#warn({ isLast: true })
  }

  #isFlood(partnerId: string): boolean {
    const count = (this.#rateLimited.get(partnerId) ?? 0) + 1
    this.#rateLimited.set(partnerId, count)
    return count > limits.rateLimitedPerFlushMax
  }

  async #write(lines: string[]): Promise<void> {
    const deadline = new Deadline({ ms: limits.flushMsMax })
    await deadline.run(() =>
      this.#withCopying((db, copyInto) =>
        db.transaction().execute(async tx => {
          // Losing the last entries in a crash is acceptable, so the commit need not wait for the disk.
          await sql`set local synchronous_commit to off`.execute(tx)
          await pipeline([Buffer.from(lines.join(''))], copyInto(copyStatement))
        }),
      ),
    )
  }

  #warn({ isLast = false } = {}): void {
    if (this.#dropped === 0) return
    if (!isLast && performance.now() - this.#warnedAtMs < limits.warnEveryMs) return
    this.#log.warn({ count: this.#dropped, err: this.#lastError }, 'request log entries dropped')
    this.#warnedAtMs = performance.now()
    this.#dropped = 0
    this.#lastError = undefined
  }
}

const copyStatement = `copy request_log (partner_id, id, request_id, created_at, method, route, path, status, duration_ms,
  key_id, idempotency_key, is_replayed, error_codes, resource_id) from stdin`

/** A line of COPY's text format. */
function lineOf(record: RequestRecord): string {
  const { requestId, isOwnRequestId, receivedAt, route, idempotencyKey, resourceId } = record
  // A caller may send the same request id with every request, also one that looks like ours.
  const id = isOwnRequestId ? newId('request', receivedAt) : requestId
  const cells = [
    ...[record.partnerId, id, isOwnRequestId ? requestId : nothing, receivedAt.toISOString(), record.method],
    ...[route ?? nothing, record.path, record.status, record.durationMs, record.keyId],
    ...[idempotencyKey === null ? nothing : escaped(idempotencyKey), record.isReplayed],
    // Codes are letters only.
    ...[`{${record.errorCodes.join(',')}}`, resourceId ?? nothing],
  ]
  return `${cells.join('\t')}\n`
}

const nothing = '\\N'

// The only cell that a caller chooses: any Latin-1 text without line breaks.
function escaped(text: string): string {
  return /[\\\t]/.test(text) ? text.replaceAll('\\', '\\\\').replaceAll('\t', '\\t') : text
}
