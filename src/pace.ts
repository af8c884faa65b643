import { setImmediate } from 'node:timers/promises'

// Short enough not to delay other requests noticeably.
const sliceMsMax = 10

/**
 * Keeps one large request from blocking the event loop: it yields between slices of a few milliseconds.
 *
 *     for (const line of lines) {
 *       if (pace.isDue) await pace.rest()
 *       …
 *     }
 */
class Pace {
  private startedAtMs = performance.now()

  get isDue(): boolean {
    return performance.now() - this.startedAtMs > sliceMsMax
  }

  async rest(): Promise<void> {
    await setImmediate()
    this.startedAtMs = performance.now()
  }
}

/** `items.map(work)`, in slices. */
export async function mapInSlices<T, U>(items: readonly T[], work: (item: T, index: number) => U): Promise<U[]> {
  const pace = new Pace()
  const results: U[] = []
  for (const [index, item] of items.entries()) {
    if (pace.isDue) await pace.rest()
    results.push(work(item, index))
  }
  return results
}
