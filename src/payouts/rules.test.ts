import { expect, test } from 'vitest'
import { nextPollAt } from './rules.ts'

test('polling backs off from two minutes to an hour, with up to half of each wait as jitter', () => {
  const now = new Date('2026-03-10T09:00:00Z')
  const waits = (random: number) =>
    Array.from(
      { length: 30 },
      (_, attempts) => (nextPollAt({ attempts, now, random }).getTime() - now.getTime()) / 60_000,
    )
  expect(waits(0).slice(0, 7)).toEqual([2, 4, 8, 16, 32, 60, 60])
  expect(waits(1).slice(0, 7)).toEqual([1, 2, 4, 8, 16, 30, 30])
  expect(Math.max(...waits(0))).toBe(60)
  expect(Math.min(...waits(1))).toBe(1)
})
