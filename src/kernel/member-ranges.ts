import { mapInSlices } from './pace.ts'

// Samples enough ids for ranges of about equal size.
const samplingStep = 50

/**
 * Splits entries into ranges of member ids, in ascending order. All entries of a member are in the same range, and a range
 * has about `sizeAbout` entries. Each step of a large request then takes milliseconds, and members are locked in id order.
 */
export async function byMemberRange<T extends { memberId: string }>(
  entries: readonly T[],
  { sizeAbout }: { sizeAbout: number },
): Promise<T[][]> {
  const sample: string[] = []
  for (let index = 0; index < entries.length; index += samplingStep) sample.push(entries[index]?.memberId ?? '')
  sample.sort()
  const step = Math.max(1, Math.floor(sizeAbout / samplingStep))
  const starts = [...new Set(sample.filter((_, index) => index > 0 && index % step === 0))]
  const ranges = [...starts, ''].map((): T[] => [])
  await mapInSlices(entries, entry => ranges[countUpTo(starts, entry.memberId)]?.push(entry))
  return ranges.filter(range => range.length > 0)
}

/** Counts the texts of a sorted list that are at or before `text`. */
function countUpTo(sorted: string[], text: string): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((sorted[middle] ?? '') <= text) low = middle + 1
    else high = middle
  }
  return low
}
