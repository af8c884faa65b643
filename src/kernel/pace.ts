import { setImmediate } from 'node:timers/promises'

// Short enough not to delay other requests noticeably.
const sliceMsMax = 3

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

/** Splits a list into pieces of at most `sizeMax`, in order. */
export function piecesOf<T>(all: readonly T[], sizeMax: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / sizeMax) }, (_, index) =>
    all.slice(index * sizeMax, (index + 1) * sizeMax),
  )
}
