import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addDays, dayIn, daysBetween, startOfDay } from '../kernel/time.ts'
import { cycleAfter, cycleOf, type Schedule } from './rules.ts'

describe('the cycle of a day', () => {
  test.each<[Schedule['every'], string, string, string, string]>([
    ['weekly', '2026-03-02', '2026-03-08', '2026-03-02', '2026-03-08'],
    ['weekly', '2026-03-02', '2026-03-01', '2026-02-23', '2026-03-01'],
    ['two_weekly', '2026-03-02', '2026-03-16', '2026-03-16', '2026-03-29'],
    ['two_weekly', '2026-03-02', '2024-02-29', '2024-02-19', '2024-03-03'],
    ['four_weekly', '2026-03-02', '2026-03-29', '2026-03-02', '2026-03-29'],
    ['semi_monthly', '2024-01-01', '2026-02-15', '2026-02-01', '2026-02-15'],
    ['semi_monthly', '2024-01-01', '2024-02-16', '2024-02-16', '2024-02-29'],
    ['semi_monthly', '2024-01-01', '2026-12-31', '2026-12-16', '2026-12-31'],
    ['monthly', '2024-01-01', '2026-02-10', '2026-02-01', '2026-02-28'],
    ['monthly', '2024-01-01', '2024-02-10', '2024-02-01', '2024-02-29'],
    ['monthly', '2024-01-25', '2026-01-24', '2025-12-25', '2026-01-24'],
    ['monthly', '2024-01-25', '2026-01-25', '2026-01-25', '2026-02-24'],
    ['monthly', '2024-01-28', '2024-03-01', '2024-02-28', '2024-03-27'],
  ])('%s, anchored on %s: %s is in %s to %s', (every, anchor, day, startDate, endDate) => {
    expect(cycleOf({ every, anchor }, day)).toEqual({ startDate, endDate })
  })

  test('a monthly schedule cannot be anchored on a day that some months lack', () => {
    expect(() => cycleOf({ every: 'monthly', anchor: '2026-01-29' }, '2026-02-10')).toThrow('from 1 to 28')
  })
})

const day = fc.integer({ min: 0, max: 30_000 }).map(count => addDays('1990-01-01', count))
const schedule = fc.record({
  every: fc.constantFrom<Schedule['every']>('weekly', 'two_weekly', 'four_weekly', 'semi_monthly', 'monthly'),
  anchor: day.filter(anchor => anchor.slice(8) <= '28'),
})

test('every day is in exactly one cycle', () => {
  fc.assert(
    fc.property(schedule, day, (each, today) => {
      const cycle = cycleOf(each, today)
      expect(cycle.startDate <= today && today <= cycle.endDate).toBe(true)
      expect(daysBetween(cycle.startDate, cycle.endDate)).toBeLessThan(31)
      expect(cycleOf(each, cycle.startDate)).toEqual(cycle)
      expect(cycleOf(each, cycle.endDate)).toEqual(cycle)
      expect(cycleOf(each, addDays(cycle.startDate, -1)).endDate).toBe(addDays(cycle.startDate, -1))
      expect(cycleOf(each, addDays(cycle.endDate, 1)).startDate).toBe(addDays(cycle.endDate, 1))
    }),
  )
})

test('cycles follow the schedule for years without a gap or overlap', () => {
  fc.assert(
    fc.property(schedule, day, (each, first) => {
      let cycle = cycleOf(each, first)
      const end = addDays(first, 5 * 365)
      while (cycle.endDate < end) {
        const next = cycleAfter(each, cycle)
        expect(next.startDate).toBe(addDays(cycle.endDate, 1))
        expect(next).toEqual(cycleOf(each, next.startDate))
        cycle = next
      }
    }),
    { numRuns: 50 },
  )
})

test('after a change of schedule, the next cycle starts the day after and ends as newly scheduled', () => {
  fc.assert(
    fc.property(schedule, schedule, day, (before, after, today) => {
      const cycle = cycleOf(before, today)
      const next = cycleAfter(after, cycle)
      expect(next.startDate).toBe(addDays(cycle.endDate, 1))
      expect(next.startDate <= next.endDate).toBe(true)
      expect(cycleAfter(after, next)).toEqual(cycleOf(after, addDays(next.endDate, 1)))
    }),
  )
})

describe('the first instant of a day', () => {
  test.each([
    ['Europe/London', '2026-03-10', '2026-03-10T00:00:00.000Z'],
    ['Europe/London', '2026-07-01', '2026-06-30T23:00:00.000Z'],
    // Nights when the clocks change.
    ['Europe/London', '2026-03-30', '2026-03-29T23:00:00.000Z'],
    ['Europe/London', '2026-10-26', '2026-10-26T00:00:00.000Z'],
    ['America/Los_Angeles', '2026-03-08', '2026-03-08T08:00:00.000Z'],
    ['Pacific/Kiritimati', '2026-03-10', '2026-03-09T10:00:00.000Z'],
    ['Pacific/Niue', '2026-03-10', '2026-03-10T11:00:00.000Z'],
    // There was no 00:00: clocks went from 23:59 to 01:00.
    ['America/Sao_Paulo', '2018-11-04', '2018-11-04T03:00:00.000Z'],
    // The day was skipped.
    ['Pacific/Apia', '2011-12-30', '2011-12-30T10:00:00.000Z'],
  ])('in %s, %s starts at %s', (timeZone, today, instant) => {
    expect(startOfDay(timeZone, today).toISOString()).toBe(instant)
  })

  test('is in that day, and the millisecond before is not', () => {
    const timeZone = fc.constantFrom(
      'Europe/London',
      'America/New_York',
      'Australia/Lord_Howe',
      'Asia/Kathmandu',
      'Africa/Cairo',
    )
    const recent = fc.integer({ min: 0, max: 4_000 }).map(count => addDays('2020-01-01', count))
    fc.assert(
      fc.property(timeZone, recent, (zone, today) => {
        const start = startOfDay(zone, today)
        expect(dayIn(zone, start)).toBe(today)
        expect(dayIn(zone, new Date(start.getTime() - 1))).toBe(addDays(today, -1))
      }),
    )
  })
})
