import { pipeline } from 'node:stream/promises'
import type { Logger } from 'pino'
import type { WithCopying } from '../database/copy.ts'
import { sql } from '../database/database.ts'
import { Deadline } from '../kernel/deadline.ts'
import { newId } from '../kernel/ids.ts'
import type { RecordRequest, RequestRecord } from '../request-record.ts'

const limits = {
  // A request shows up in the log within about this time.
  flushEveryMs: 1_000,
  // Two seconds of the busiest process measured; at up to 2 KB each, 40 MB.
  waitingMax: 20_000,
  // Some 200 entries.
  chunkBytes: 65_536,
  // A partner far beyond its rate limit must not fill the disk. The default rate limit.
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
  #lines = new Lines()
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
    if (this.#lines.count >= limits.waitingMax) this.#dropped += 1
    else this.#lines.add(lineOf(record))
  }

  /** Writes the entries recorded so far. Never throws. */
  async flush(): Promise<void> {
    // One flush at a time: a slow database must not get more work.
    while (this.#flushing !== undefined) await this.#flushing
    this.#rateLimited.clear()
    const lines = this.#lines
    if (lines.count > 0) {
      this.#lines = new Lines()
      this.#flushing = this.#write(lines)
        .catch(error => {
          this.#dropped += lines.count
          this.#lastError = error
        })
        .finally(() => {
          this.#flushing = undefined
        })
      await this.#flushing
    }
    this.#warn()
  }

  /** Writes the remaining entries, unless the database is too slow. */
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

  async #write(lines: Lines): Promise<void> {
    const deadline = new Deadline({ ms: limits.flushMsMax })
    await deadline.run(() =>
      this.#withCopying((db, copyInto) =>
        db.transaction().execute(async tx => {
          // Losing the last entries in a crash is acceptable, so the commit need not wait for the disk.
          await sql`set local synchronous_commit to off`.execute(tx)
          await pipeline(lines.chunks(), copyInto(copyStatement))
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

/**
 * Collects lines as bytes. As strings they would live in the young generation for a second, and collecting them would cost as
 * much as writing them.
 */
class Lines {
  count = 0
  readonly #full: Buffer[] = []
  #chunk = Buffer.allocUnsafe(limits.chunkBytes)
  #used = 0

  add(line: string): void {
    // A UTF-16 unit takes up to three bytes.
    const bytesMax = line.length * 3
    if (this.#used + bytesMax > this.#chunk.length) {
      this.#full.push(this.#chunk.subarray(0, this.#used))
      this.#chunk = Buffer.allocUnsafe(Math.max(limits.chunkBytes, bytesMax))
      this.#used = 0
    }
    this.#used += this.#chunk.write(line, this.#used)
    this.count += 1
  }

  chunks(): Buffer[] {
    return [...this.#full, this.#chunk.subarray(0, this.#used)]
  }
}

const copyStatement = `copy request_log (partner_id, id, request_id, created_at, method, route, path, status, duration_ms,
  key_id, idempotency_key, is_replayed, error_codes, resource_id) from stdin`

/** A line of COPY's text format. One template: this runs for every request, and lists of cells cost twice as much. */
function lineOf(record: RequestRecord): string {
  const { partnerId, requestId, isOwnRequestId, receivedAt, method, route, path, status, durationMs, keyId } = record
  const { idempotencyKey, isReplayed, errorCodes, resourceId } = record
  // A caller may send the same request id with every request, even one that looks like ours.
  const id = isOwnRequestId ? newId('request', receivedAt) : requestId
  const ownId = isOwnRequestId ? requestId : nothing
  const key = idempotencyKey === null ? nothing : escaped(idempotencyKey)
  // Codes are letters only.
  const codes = errorCodes.length === 0 ? '{}' : `{${errorCodes.join(',')}}`
  return `${partnerId}\t${id}\t${ownId}\t${receivedAt.toISOString()}\t${method}\t${route ?? nothing}\t${path}\t${status}\t${durationMs}\t${keyId}\t${key}\t${isReplayed}\t${codes}\t${resourceId ?? nothing}\n`
}

const nothing = '\\N'

// The only cell chosen by the caller: any Latin-1 text without line breaks.
function escaped(text: string): string {
  return /[\\\t]/.test(text) ? text.replaceAll('\\', '\\\\').replaceAll('\t', '\\t') : text
}
