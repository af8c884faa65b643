/** Reproducible random choices. Each client has its own stream, so that timing does not change its choices. */
export type Random = {
  /** A whole number; both bounds are inclusive. */
  between(min: number, max: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
  shuffled<T>(all: readonly T[]): T[]
}

/** @param name identifies the stream */
export function randomOf(seed: number, name: string): Random {
  let state = seed | 0
  for (const letter of name) state = Math.imul(state ^ letter.charCodeAt(0), 0x9e3779b1)
  // Mulberry32: small, and good enough for tests.
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (min: number, max: number) => min + Math.floor(next() * (max - min + 1))
  return {
    between,
    chance: probability => next() < probability,
    pick(from) {
      const picked = from[between(0, from.length - 1)]
      if (picked === undefined) throw new Error('Cannot pick from an empty list')
      return picked
    },
    shuffled: all =>
      all
        .map(each => ({ each, place: next() }))
        .sort((a, b) => a.place - b.place)
        .map(({ each }) => each),
  }
}
