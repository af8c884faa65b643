// Source: ECMA-376 part 1, 18.8.30 "numFmt": the formats that a workbook need not declare.
const builtInDateFormats = new Set([
  ...[14, 15, 16, 17, 18, 19, 20, 21, 22, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36],
  ...[45, 46, 47, 50, 51, 52, 53, 54, 55, 56, 57, 58],
])

/** Whether a number format shows a date or a time. */
export function isDateFormat(id: number, codes: ReadonlyMap<number, string>): boolean {
  const code = codes.get(id)
  if (code === undefined) return builtInDateFormats.has(id)
  // Ignores quoted text, escaped characters, colours and conditions. Elapsed hours are written [h].
  const letters = code.replace(/"[^"]*"|[\\_*]./g, '').replace(/\[(?!h+\]|m+\]|s+\])[^\]]*\]/gi, '')
  return /[dmyhs]/i.test(letters.replace(/general/i, ''))
}

/**
 * Converts a serial number to a day, or a day and time.
 * @returns undefined before March 1900, where Excel and the calendar are a day apart, and after 9999
 */
export function dateOf(serial: number, { countsFrom1904 }: { countsFrom1904: boolean }): Date | undefined {
  const time = (countsFrom1904 ? startOf1904 : startOf1900) + Math.round(serial * dayMs)
  return time >= firstDay && time < endOfDays ? new Date(time) : undefined
}

const dayMs = 86_400_000
const startOf1904 = Date.UTC(1904, 0, 1)
// Excel counts a 29 February 1900 that never existed, so its serial numbers effectively start on 30 December 1899.
const startOf1900 = Date.UTC(1899, 11, 30)
const firstDay = Date.UTC(1900, 2, 1)
const endOfDays = Date.UTC(10_000, 0, 1)
