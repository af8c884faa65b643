import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addDays, dayIn, instantAt } from '../../kernel/time.ts'
import { fileRailsOf } from '../channels/rail.ts'
import { readRails } from '../read-rails.ts'
import { addBankingDays, CalendarEnded, daysLeft, isBankingDay, nextBankingDay, withOverride } from './calendar.ts'
import { atOnce, cutOffOf, leadTimes } from './cut-off.ts'
import { easterSundayOf, target } from './target.ts'
import { uk, ukCalendarOf } from './uk.ts'

/** The weekdays of a year on which a calendar is closed. */
function closedWeekdays(calendar: typeof uk, year: number): string[] {
  const days = Array.from({ length: 366 }, (_, index) => addDays(`${year}-01-01`, index))
  return days.filter(day => day.startsWith(String(year)) && !isWeekend(day) && !isBankingDay(calendar, day))
}

const isWeekend = (day: string) => [0, 6].includes(new Date(`${day}T00:00:00Z`).getUTCDay())

test('Easter falls on the dates that are published, including the earliest, the latest and the exceptions', () => {
  const published =
    '1818-03-22 1943-04-25 1954-04-18 1981-04-19 2000-04-23 2008-03-23 2011-04-24 2016-03-27 2018-04-01 2019-04-21 2020-04-12 2021-04-04 2022-04-17 2023-04-09 2024-03-31 2025-04-20 2026-04-05 2027-03-28 2028-04-16 2029-04-01 2030-04-21 2038-04-25 2049-04-18 2076-04-19'
  for (const day of published.split(' ')) expect(easterSundayOf(Number(day.slice(0, 4)))).toBe(day)
})

test('TARGET is closed on six holidays, which weekends swallow without a substitute', () => {
  expect(closedWeekdays(target, 2026)).toEqual(['2026-01-01', '2026-04-03', '2026-04-06', '2026-05-01', '2026-12-25'])
  expect(closedWeekdays(target, 2027)).toEqual(['2027-01-01', '2027-03-26', '2027-03-29'])
  expect(closedWeekdays(target, 2024)).toEqual([
    ...['2024-01-01', '2024-03-29', '2024-04-01', '2024-05-01', '2024-12-25', '2024-12-26'],
  ])
})

describe('the UK calendar', () => {
  test('is closed on eight weekdays a year, with substitutes for holidays on a weekend', () => {
    for (const year of [2025, 2026, 2027, 2028]) expect(closedWeekdays(uk, year)).toHaveLength(8)
    // Boxing Day 2026, Christmas 2027 and New Year 2028 are Saturdays.
    for (const day of ['2026-12-28', '2027-12-27', '2027-12-28', '2028-01-03']) {
      expect(isBankingDay(uk, day), day).toBe(false)
    }
    for (const day of ['2026-12-29', '2027-12-29', '2028-01-04']) expect(isBankingDay(uk, day), day).toBe(true)
  })

  test('lists Good Friday and Easter Monday as they are computed, and Mondays for the rest of spring and summer', () => {
    for (const year of [2025, 2026, 2027, 2028]) {
      const easter = easterSundayOf(year)
      const closed = closedWeekdays(uk, year)
      expect(closed.slice(1, 3)).toEqual([addDays(easter, -2), addDays(easter, 1)])
      for (const day of closed.slice(3, 6)) expect(new Date(day).getUTCDay()).toBe(1)
    }
  })

  test('takes an extra holiday of the operator, as on 19 September 2022, and moves a batch across it', () => {
    // The list as it was published before September 2022.
    const bankHolidays =
      '2022-01-03 2022-04-15 2022-04-18 2022-05-02 2022-06-02 2022-06-03 2022-08-29 2022-12-26 2022-12-27'
    const published = ukCalendarOf({
      bankHolidays: bankHolidays.split(' '),
      validFrom: '2022-01-01',
      validUntil: '2022-12-31',
    })
    const calendar = withOverride(published, { closedDays: ['2022-09-19'] })
    expect(isBankingDay(published, '2022-09-19')).toBe(true)
    expect(isBankingDay(calendar, '2022-09-19')).toBe(false)
    // Input on Friday: processing on Tuesday, entry on Wednesday.
    const now = new Date('2022-09-16T10:00:00Z')
    const plan = { now, cutOff: '15:00', timeZone: 'Europe/London', ...leadTimes.bacs }
    expect(cutOffOf({ ...plan, calendar: published }).expectedOn).toBe('2022-09-20')
    expect(cutOffOf({ ...plan, calendar })).toMatchObject({ valueDate: '2022-09-20', expectedOn: '2022-09-21' })
  })

  test('refuses to answer beyond its data, and warns in time how long the data lasts', () => {
    expect(daysLeft(uk, '2028-12-31')).toBe(0)
    expect(daysLeft(uk, '2028-12-01')).toBe(30)
    expect(daysLeft(uk, '2029-01-02')).toBe(-2)
    expect(() => isBankingDay(uk, '2029-01-01')).toThrow(CalendarEnded)
    expect(() => isBankingDay(uk, '2024-12-31')).toThrow('covers 2025-01-01 to 2028-12-31, not 2024-12-31')
    expect(() => nextBankingDay(uk, '2028-12-30')).toThrow(CalendarEnded)
    expect(() => addBankingDays(uk, '2028-12-29', 1)).toThrow(CalendarEnded)
    // The operator has listed January 2029.
    const extended = withOverride(uk, { closedDays: ['2029-01-01'], validUntil: '2029-01-31' })
    expect(nextBankingDay(extended, '2028-12-30')).toBe('2029-01-02')
    // An override never shortens it.
    expect(withOverride(uk, { validUntil: '2026-01-01' }).validUntil).toBe(uk.validUntil)
  })
})

test('banking days are counted in both directions, and the day itself does not count', () => {
  // Thursday before Easter 2026: Friday and Monday are holidays.
  expect(addBankingDays(uk, '2026-04-02', 1)).toBe('2026-04-07')
  expect(addBankingDays(uk, '2026-04-07', -1)).toBe('2026-04-02')
  expect(addBankingDays(uk, '2026-04-04', 0)).toBe('2026-04-04')
  expect(nextBankingDay(uk, '2026-04-03')).toBe('2026-04-07')
  expect(nextBankingDay(uk, '2026-04-07')).toBe('2026-04-07')
})

describe('the cut-off', () => {
  const sepa = {
    cutOff: '15:00',
    timeZone: 'Europe/Berlin',
    calendar: target,
    ...leadTimes['sepa-credit-transfer'],
  }
  test.each([
    ['before it on a banking day, the file goes today', '2026-03-10T13:59:59.999Z', '2026-03-10T14:00Z', '2026-03-10'],
    ['at the cut-off, it goes on the next banking day', '2026-03-10T14:00:00.000Z', '2026-03-11T14:00Z', '2026-03-11'],
    ['on Friday evening, it goes on Monday', '2026-03-13T20:00:00.000Z', '2026-03-16T14:00Z', '2026-03-16'],
    ['on Saturday morning, it goes on Monday', '2026-03-14T06:00:00.000Z', '2026-03-16T14:00Z', '2026-03-16'],
    // Clocks go forward on Sunday: the same local time is an hour earlier in UTC.
    [
      'over the change to summer time, it keeps local time',
      '2026-03-27T14:00:00.000Z',
      '2026-03-30T13:00Z',
      '2026-03-30',
    ],
    ['before Easter, it goes on Tuesday', '2026-04-02T13:00:00.000Z', '2026-04-07T13:00Z', '2026-04-07'],
    [
      'over the change to winter time, it keeps local time',
      '2026-10-23T13:00:00.000Z',
      '2026-10-26T14:00Z',
      '2026-10-26',
    ],
    // In Berlin it is already Thursday.
    ['the day is the bank’s, not UTC’s', '2026-03-11T23:30:00.000Z', '2026-03-12T14:00Z', '2026-03-12'],
  ])('of SEPA: %s', (_, now, cutOffAt, valueDate) => {
    const schedule = cutOffOf({ ...sepa, now: new Date(now) })
    expect(schedule.cutOffAt).toEqual(new Date(cutOffAt))
    expect(schedule.valueDate).toBe(valueDate)
    expect(schedule.expectedOn).toBe(addBankingDays(target, valueDate, 1))
  })

  test('of Bacs: input, processing and entry are three working days in a row', () => {
    const bacs = { cutOff: '15:30', timeZone: 'Europe/London', calendar: uk, ...leadTimes.bacs }
    expect(cutOffOf({ ...bacs, now: new Date('2026-03-10T15:29:00Z') })).toEqual({
      cutOffAt: new Date('2026-03-10T15:30:00Z'),
      valueDate: '2026-03-11',
      expectedOn: '2026-03-12',
    })
    // 24 December after the cut-off, with Christmas on Friday and a substitute on Monday: input on Tuesday the 29th.
    expect(cutOffOf({ ...bacs, now: new Date('2026-12-24T16:00:00Z') })).toEqual({
      cutOffAt: new Date('2026-12-29T15:30:00Z'),
      valueDate: '2026-12-30',
      expectedOn: '2026-12-31',
    })
  })

  test('does not exist for instant payments, which go immediately, even on holidays', () => {
    const now = new Date('2026-12-25T23:30:00Z')
    expect(atOnce({ now, timeZone: 'Europe/Berlin' })).toEqual({
      cutOffAt: now,
      valueDate: '2026-12-26',
      expectedOn: '2026-12-26',
    })
  })

  test('is never in the past and never on a closed day, whatever the minute', () => {
    const minutes = fc.integer({ min: 0, max: 2 * 366 * 24 * 60 })
    const time = fc.constantFrom('00:00', '01:30', '02:30', '15:00', '23:59')
    const zone = fc.constantFrom('Europe/London', 'Europe/Berlin', 'Europe/Helsinki')
    fc.assert(
      fc.property(minutes, time, zone, (minute, cutOff, timeZone) => {
        const now = new Date(Date.parse('2026-01-01T00:00:00Z') + minute * 60_000)
        const { cutOffAt, valueDate } = cutOffOf({ ...sepa, now, cutOff, timeZone })
        expect(cutOffAt.getTime()).toBeGreaterThan(now.getTime())
        expect(dayIn(timeZone, cutOffAt)).toBe(valueDate)
        expect(isBankingDay(target, valueDate)).toBe(true)
      }),
    )
  })
})

test.each([
  ['Europe/Berlin', '2026-03-10', '15:00', '2026-03-10T14:00:00.000Z'],
  ['Europe/Berlin', '2026-07-10', '15:00', '2026-07-10T13:00:00.000Z'],
  ['Europe/London', '2026-03-29', '00:30', '2026-03-29T00:30:00.000Z'],
  ['Europe/London', '2026-03-29', '02:00', '2026-03-29T01:00:00.000Z'],
  // Clocks skip 01:30: as if they had gone forward before it.
  ['Europe/London', '2026-03-29', '01:30', '2026-03-29T00:30:00.000Z'],
  // Clocks show 01:30 twice: the first of the two.
  ['Europe/London', '2026-10-25', '01:30', '2026-10-25T00:30:00.000Z'],
  ['Pacific/Apia', '2026-03-10', '00:00', '2026-03-09T11:00:00.000Z'],
  ['Asia/Kathmandu', '2026-03-10', '12:00', '2026-03-10T06:15:00.000Z'],
])('in %s on %s, %s is %s', (timeZone, day, time, instant) => {
  expect(instantAt(timeZone, day, time).toISOString()).toBe(instant)
})

test('an operator who knows more holidays extends the calendar of a rail in its settings', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'midmonth-calendar-'))
  const file = path.join(folder, 'rails.json')
  const scheduled = async (changes: object) => {
    const rail = {
      ...{ name: 'bacs', type: 'standard18-file', currency: 'GBP', scheme: 'bacs', serviceUserNumber: '123456' },
      ...{ debtors: { default: { name: 'Midmonth Ltd', sortCode: '089999', accountNumber: '66374958' } } },
      ...{ cutOff: '15:00', timeZone: 'Europe/London', ...changes },
    }
    writeFileSync(file, JSON.stringify({ rails: [rail] }))
    return fileRailsOf(await readRails(file, 'live'))[0]?.schedule(new Date('2028-12-29T16:00:00Z')).expectedOn
  }
  try {
    await expect(scheduled({})).rejects.toThrow(CalendarEnded)
    expect(await scheduled({ closedDays: ['2029-01-01'], closedDaysUntil: '2029-01-31' })).toBe('2029-01-04')
    await expect(scheduled({ closedDaysUntil: '2028-01-01' })).rejects.toThrow(CalendarEnded)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
