import { setImmediate } from 'node:timers/promises'

// Short enough not to delay other requests noticeably.
const sliceMsMax = 10

/** `items.map(work)`, in slices of a few milliseconds, so that one large request does not block the event loop. */
export async function mapInSlices<T, U>(items: readonly T[], work: (item: T, index: number) => U): Promise<U[]> {
  let startedAtMs = performance.now()
  const results: U[] = []
  for (const [index, item] of items.entries()) {
    if (performance.now() - startedAtMs > sliceMsMax) {
      await setImmediate()
      startedAtMs = performance.now()
    }
    results.push(work(item, index))
  }
  return results
}
