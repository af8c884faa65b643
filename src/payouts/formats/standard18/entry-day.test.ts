import { expect, test } from 'vitest'
import { uk } from '../../calendars/uk.ts'
import { entryDayOf, stateWithoutAdvice } from './entry-day.ts'

test.each([
  ['2026-03-11', '2026-03-12'],
  // Over a weekend, and over Easter.
  ['2026-03-13', '2026-03-16'],
  ['2026-04-02', '2026-04-07'],
])('a Bacs payment that is processed on %s counts as paid from %s on, and not before', (processingDay, entryDay) => {
  const stateOn = (today: string) => stateWithoutAdvice('bacs', processingDay, { today, calendar: uk })
  expect(entryDayOf('bacs', processingDay, uk)).toBe(entryDay)
  expect(stateOn(processingDay)).toBe('pending')
  expect(stateOn(entryDay)).toBe('paid')
  expect(stateOn('2026-12-31')).toBe('paid')
})

test('a faster payment counts as paid on the day after, weekends included', () => {
  const stateOn = (today: string) => stateWithoutAdvice('faster-payments', '2026-03-13', { today, calendar: uk })
  expect(entryDayOf('faster-payments', '2026-03-13', uk)).toBe('2026-03-13')
  expect(stateOn('2026-03-13')).toBe('pending')
  expect(stateOn('2026-03-14')).toBe('paid')
})
