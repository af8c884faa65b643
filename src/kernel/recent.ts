/** Remembers values for one to two periods; using a value does not prolong that. */
export class Recent<Value> {
  readonly #periodMs: number
  readonly #countMax: number
  #newer = new Map<string, Value>()
  #older = new Map<string, Value>()
  #timer: NodeJS.Timeout | undefined

  /** @param options.countMax values of one period; more are not remembered */
  constructor({ periodMs, countMax }: { periodMs: number; countMax: number }) {
    this.#periodMs = periodMs
    this.#countMax = countMax
  }

  get(key: string): Value | undefined {
    return this.#newer.get(key) ?? this.#older.get(key)
  }

  set(key: string, value: Value): void {
    if (this.#newer.size >= this.#countMax) return
    this.#newer.set(key, value)
    // Without the timer, the last values would stay in memory until the next one.
    this.#timer ??= setInterval(() => this.#turn(), this.#periodMs).unref()
  }

  #turn(): void {
    this.#older = this.#newer
    this.#newer = new Map()
    if (this.#older.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
