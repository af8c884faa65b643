import { sql, type Tx } from '../../database/database.ts'
import { countOf } from '../../kernel/text.ts'
import { addDays, type Day, dayIn } from '../../kernel/time.ts'
import { type Calendar, CalendarEnded, isBankingDay } from '../calendars/calendar.ts'
import { isCovered } from './brakes.ts'
import type { FileRailSettings } from './file-rail-settings.ts'
import type { Restore } from './restores.ts'

/** A rail of an API. @property listedUntil until when all payments that it has made are listed */
export type ComparedApi = { name: string; listedUntil: Date | null }

type Comparing = {
  rails: readonly FileRailSettings[]
  apis: readonly ComparedApi[]
  restore: Restore
  needsStatements: boolean
}

/**
 * What keeps payouts from going on after a restore, one sentence each.
 * @param rails all rails of files
 * @param apis all other rails
 * @param needsStatements whether the statements of each bank that sends them must cover the banking days from the backup to the restore,
 * and each API must have listed its payments since
 */
export async function listUncompared(tx: Tx, { rails, apis, restore, needsStatements }: Comparing): Promise<string[]> {
  const found: string[] = []
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from payout_exceptions
     where closed_at is null and opened_at >= ${restore.detectedAt}`.execute(tx)
  const open = rows[0]?.count ?? 0
  if (open > 0)
    found.push(
      `${countOf(open, 'payout exception')} since the restore ${open === 1 ? 'is' : 'are'} open; decide them first`,
    )
  if (!needsStatements) return found
  for (const { name, listedUntil } of apis)
    if (listedUntil === null || listedUntil < restore.detectedAt)
      found.push(`${name} has not listed its payments since the restore; the worker asks for them every minute`)
  const recoveredUntil = restore.recoveredUntil ?? (await newestKnown(tx, restore))
  for (const rail of rails.filter(({ format }) => format.readsStatements)) {
    for (const debtor of Object.keys(rail.debtors)) {
      const lacking: Day[] = []
      for (const day of bankingDays(rail, { from: recoveredUntil, until: restore.detectedAt }))
        if (!(await isCovered(tx, { rail, debtor, day }))) lacking.push(day)
      const [first, ...others] = lacking
      if (first === undefined) continue
      const more = others.length === 0 ? '' : ` and ${countOf(others.length, 'later day')}`
      found.push(
        `No imported statement of ${rail.name} (${debtor}) covers ${first}${more}; import the statements from the backup to the restore first`,
      )
    }
  }
  return found
}

/** The newest instant at which the restored books know that a batch was made or sent; the detection if there was none. */
async function newestKnown(tx: Tx, { detectedAt }: Restore): Promise<Date> {
  const { rows } = await sql<{ newest: Date | null }>`
    select max(greatest(created_at, case when sent_at < ${detectedAt} then sent_at end)) as newest
      from payout_batches where created_at < ${detectedAt}`.execute(tx)
  return rows[0]?.newest ?? detectedAt
}

function bankingDays({ timeZone, calendar }: FileRailSettings, { from, until }: { from: Date; until: Date }): Day[] {
  const last = dayIn(timeZone, until)
  const days: Day[] = []
  for (let day = dayIn(timeZone, from); day <= last; day = addDays(day, 1))
    if (calendar === null || isOpen(calendar, day)) days.push(day)
  return days
}

/** A day that the calendar does not cover counts as open: a statement too many is asked for. */
function isOpen(calendar: Calendar, day: Day): boolean {
  try {
    return isBankingDay(calendar, day)
  } catch (error) {
    if (error instanceof CalendarEnded) return true
    throw error
  }
}
