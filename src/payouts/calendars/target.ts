import { addDays, type Day } from '../../kernel/time.ts'
import type { Calendar } from './calendar.ts'

/**
 * The days of T2 (formerly TARGET2), on which euro payments settle. The six rules have not changed since 2002. They are
 * computed, so the data ends only where the rules can no longer be taken for granted.
 * Source: European Central Bank, "TARGET closing days"
 */
export const target: Calendar = {
  name: 'TARGET',
  validFrom: '2002-01-01',
  validUntil: '2099-12-31',
  isHoliday: day => {
    const monthAndDay = day.slice(5)
    if (['01-01', '05-01', '12-25', '12-26'].includes(monthAndDay)) return true
    const easterSunday = easterSundayOf(Number(day.slice(0, 4)))
    const goodFriday = addDays(easterSunday, -2)
    const easterMonday = addDays(easterSunday, 1)
    return day === goodFriday || day === easterMonday
  },
}

/**
 * Returns Easter Sunday of a year of the Gregorian calendar.
 * Source: the anonymous Gregorian computus (Meeus, Jones, Butcher). The names follow its steps: the moon's 19-year cycle, the
 * leap years of the centuries, the epact, and the Sunday after the full moon.
 */
export function easterSundayOf(year: number): Day {
  const moonYear = year % 19
  const century = Math.floor(year / 100)
  const yearOfCentury = year % 100
  const leapCenturies = Math.floor(century / 4)
  const moonCorrection = Math.floor((century - Math.floor((century + 8) / 25) + 1) / 3)
  const epact = (19 * moonYear + century - leapCenturies - moonCorrection + 15) % 30
  const toSunday = (32 + 2 * (century % 4) + 2 * Math.floor(yearOfCentury / 4) - epact - (yearOfCentury % 4)) % 7
  const lateMoon = Math.floor((moonYear + 11 * epact + 22 * toSunday) / 451)
  const daysFromMarch = epact + toSunday - 7 * lateMoon + 114
  const month = Math.floor(daysFromMarch / 31)
  const dayOfMonth = (daysFromMarch % 31) + 1
  return `${year}-${String(month).padStart(2, '0')}-${String(dayOfMonth).padStart(2, '0')}`
}
