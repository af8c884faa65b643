import { sql, type Tx } from '../../database/database.ts'
import { countOf } from '../../kernel/text.ts'
import { dayIn } from '../../kernel/time.ts'
import { isCovered } from './brakes.ts'
import type { FileRailSettings } from './file-rail-settings.ts'
import type { Restore } from './restores.ts'

/**
 * What keeps payouts from going on after a restore, one sentence each.
 * @param rails all rails of files
 * @param needsStatements whether each bank that sends statements must have sent one for the day of the restore
 */
export async function listUncompared(
  tx: Tx,
  {
    rails,
    restore,
    needsStatements,
  }: { rails: readonly FileRailSettings[]; restore: Restore; needsStatements: boolean },
): Promise<string[]> {
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
  for (const rail of rails.filter(({ format }) => format.readsStatements)) {
    const day = dayIn(rail.timeZone, restore.detectedAt)
    const lacking: string[] = []
    for (const debtor of Object.keys(rail.debtors))
      if (!(await isCovered(tx, { rail, debtor, day }))) lacking.push(debtor)
    if (lacking.length > 0)
      found.push(
        `No imported statement of ${rail.name} covers ${day} (${lacking.join(', ')}), the day on which the restore was detected; import it first`,
      )
  }
  return found
}
