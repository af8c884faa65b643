import type { Tx } from '../database/database.ts'
import { shareByName } from '../database/named-locks.ts'
import { sealerOf } from './held.ts'

/** The lock that keeps the stages of the keys of fingerprints. */
export const stagesLock = ['stages of', 'fingerprints'] as const

/**
 * While the key of fingerprints is rotated, keeps the stages of its keys until the transaction ends, and makes this process know them. A
 * transaction that compares many fingerprints then finds all of them made with one key: in the column that `usesNextFingerprints` names.
 */
export async function pinFingerprints(tx: Tx): Promise<void> {
  const sealer = sealerOf(tx)
  // A rotation that began in the meantime waits for this transaction before its second step.
  if (!sealer.isRotatingFingerprints) return
  await shareByName(tx, ...stagesLock)
  await sealer.refresh()
}
