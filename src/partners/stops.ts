/** Since when, by whom and why a partner is paused or suspended; null where the audit log has no record. */
export type Stop = { since: Date | null; by: string | null; reason: string | null }

export type Stops = { paused: Stop | null; suspended: Stop | null }

/** @param stop as read, or as a response shows it */
export function stopInWords({ since, by, reason }: Omit<Stop, 'since'> & { since: Date | string | null }): string {
  const known = [
    ...(since === null ? [] : [`since ${new Date(since).toISOString()}`]),
    ...(by === null ? [] : [`by ${by}`]),
    ...(reason === null ? [] : [`(${reason})`]),
  ]
  return known.length === 0 ? 'since an unknown time (not in the audit log)' : known.join(' ')
}
