import type { Change } from '../audit-log/audit-log.ts'
import type { Db, Tx } from '../database/database.ts'
import { withoutLimit } from '../database/wait-limits.ts'
import { eraseAgain } from '../erasure/erasure.ts'
import type { ErasureSettings } from '../erasure/journal.ts'
import { listWithoutKeys } from '../members/key-checks.ts'
import { giveUpKeys } from '../members/lost-keys.ts'
import type { Owner } from '../sealing/member-keys.ts'
import * as withdrawals from '../withdrawals/withdrawals.ts'

const membersAtOnce = 250

/**
 * Records that the keys of the members who have none are lost: what they sealed is given up, and withdrawals that were not sent are
 * cancelled, since their accounts are not known. May be killed and repeated. Erases the members of the journal before, who are not lost.
 * @param record writes to the audit log
 * @returns how many members there were
 */
export async function giveUpLostKeys(
  db: Db,
  {
    erasures,
    now,
    record,
  }: { erasures: ErasureSettings; now: Date; record: (tx: Tx, partnerId: string, change: Change) => Promise<void> },
): Promise<number> {
  await eraseAgain(db, erasures)
  let count = 0
  for (let after: Owner | undefined; ; ) {
    const beyond = after
    const lost = await withoutLimit(db, tx => listWithoutKeys(tx, { after: beyond, take: membersAtOnce }))
    after = lost.at(-1)
    if (after === undefined) return count
    for (const [partnerId, members] of Map.groupBy(lost, each => each.partnerId))
      await db.transaction().execute(async tx => {
        const memberIds = members.map(({ memberId }) => memberId)
        const cancelled = await withdrawals.cancelHeld(tx, { partnerId, memberIds, reason: 'The account is lost', now })
        for (const memberId of await giveUpKeys(tx, { partnerId, memberIds, now })) {
          const details = { cancelledWithdrawals: cancelled.get(memberId) ?? [] }
          await record(tx, partnerId, { action: 'member.lose_keys', resourceId: memberId, details })
          count += 1
        }
      })
  }
}
