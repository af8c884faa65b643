import type { Tx } from '../../database/database.ts'
import { lockByName } from '../../database/named-locks.ts'

/**
 * Makes transactions on a rail take turns. Holders of `records` write its feed, so that records are committed in the order of
 * their sequence, and a reader never skips one. Holders of `batches` approve batches up to the limit of the day.
 */
export async function lockRail(
  tx: Tx,
  { rail, for: purpose }: { rail: string; for: 'records' | 'batches' },
): Promise<void> {
  await lockByName(tx, 'payout rail', `${rail}${purpose}`)
}
