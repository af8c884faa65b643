import { mapInSlices } from './pace.ts'

// Enough of the ids that the ranges between them hold about as many each.
const samplingStep = 50

/**
 * Parts what is about members by ranges of their ids, in ascending order: whole members, about `sizeAbout` things each. So
 * that each step of a large request takes milliseconds, and locks of members are taken in the order of their ids.
 */
export async function byMemberRange<T extends { memberId: string }>(
  things: readonly T[],
  { sizeAbout }: { sizeAbout: number },
): Promise<T[][]> {
  const sample: string[] = []
  for (let index = 0; index < things.length; index += samplingStep) sample.push(things[index]?.memberId ?? '')
  sample.sort()
  const step = Math.max(1, Math.floor(sizeAbout / samplingStep))
  const starts = [...new Set(sample.filter((_, index) => index > 0 && index % step === 0))]
  const ranges = [...starts, ''].map((): T[] => [])
  await mapInSlices(things, thing => ranges[countUpTo(starts, thing.memberId)]?.push(thing))
  return ranges.filter(range => range.length > 0)
}

/** How many of these, which are sorted, are not behind a text. */
function countUpTo(sorted: string[], text: string): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? '') <= text) low = middle + 1
    else high = middle
  }
  return low
}
