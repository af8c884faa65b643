const tickMs = 50
// A client may send thousands of requests over one connection without awaiting responses.
const waitingMax = 4_096

/**
 * Paces the refusals of a flood. A client that ignores `retry-after` sends its next request as soon as it is refused, so refusing
 * thousands at once would leave no time for the requests of others. Up to the limit, refusals are immediate.
 */
export class PacedRefusals {
  readonly #perTick: number
  readonly #waiting: (() => void)[] = []
  #inTick = 0
  #isClosed = false
  readonly #ticking: NodeJS.Timeout

  /** @param perSecond refusals a second, of all callers */
  constructor({ perSecond }: { perSecond: number }) {
    this.#perTick = Math.ceil((perSecond * tickMs) / 1_000)
    this.#ticking = setInterval(() => this.#tick(), tickMs).unref()
  }

  /** @returns undefined if the refusal may be sent; otherwise resolves when it may */
  turn(): Promise<void> | undefined {
    if (this.#isClosed || this.#waiting.length >= waitingMax) return undefined
    if (this.#inTick >= this.#perTick) return new Promise(resolve => this.#waiting.push(resolve))
    this.#inTick += 1
    return undefined
  }

  /** Sends what is left. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#ticking)
    for (const send of this.#waiting.splice(0)) send()
  }

  #tick(): void {
    const next = this.#waiting.splice(0, this.#perTick)
    this.#inTick = next.length
    for (const send of next) send()
  }
}
