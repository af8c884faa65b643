import { setImmediate } from 'node:timers/promises'

// Short enough that the requests that are answered in between notice nothing.
const sliceMsMax = 10

/**
 * Keeps the work of one large request from holding the others up: it rests between slices of a few milliseconds.
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
