import type { Logger } from 'pino'

// Overload and outages refuse thousands of requests a second, all for the same few reasons.
const summaryEveryMs = 1_000

/**
 * Logs why the service was unavailable: the first refusal with its error and request, then one line a second with counts by kind
 * until the refusals stop.
 */
export class UnavailabilityLog {
  readonly #log: Logger
  readonly #counts = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(log: Logger) {
    this.#log = log
  }

  add(error: unknown, requestId: string): void {
    if (this.#timer === undefined) {
      this.#log.error({ err: error, requestId }, 'service unavailable')
      this.#timer = setInterval(() => this.#summarise(), summaryEveryMs).unref()
      return
    }
    const kind = kindOf(error)
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1)
  }

  close(): void {
    if (this.#counts.size > 0) this.#summarise()
    clearInterval(this.#timer)
  }

  #summarise(): void {
    if (this.#counts.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
      return
    }
    this.#log.error({ refusals: Object.fromEntries(this.#counts) }, 'service unavailable')
    this.#counts.clear()
  }
}

// Database codes and messages contain no row values, but a driver's message may contain an address, so codes come first.
function kindOf(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string }
  return code ?? message ?? 'unknown'
}
