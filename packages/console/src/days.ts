/** The calendar day of an instant in a time zone, such as '2026-03-31'. */
export function dayIn(timeZone: string, instant: Date): string {
  // The Swedish locale formats days as in ISO 8601.
  return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' }).format(instant)
}

/** The number of days from one day to another. */
export function daysBetween(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / 86_400_000
}
