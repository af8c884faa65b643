import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Recent } from './recent.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('a value is known for a period and forgotten after two, also if nothing asks for it', () => {
  const recent = new Recent<object>({ periodMs: 2_000, countMax: 10 })
  recent.set('a', { value: 1 })
  vi.advanceTimersByTime(1_999)
  expect(recent.get('a')).toEqual({ value: 1 })
  vi.advanceTimersByTime(2_001)
  expect(recent.get('a')).toBeUndefined()
  expect(vi.getTimerCount()).toBe(0)
})

test('using a value does not prolong it, and no more values than allowed are remembered', () => {
  const recent = new Recent<number>({ periodMs: 1_000, countMax: 2 })
  for (const [index, key] of ['a', 'b', 'c'].entries()) recent.set(key, index)
  expect(['a', 'b', 'c'].map(key => recent.get(key))).toEqual([0, 1, undefined])
  for (let count = 0; count < 4; count++) {
    vi.advanceTimersByTime(500)
    recent.get('a')
  }
  expect(recent.get('a')).toBeUndefined()
})
