import type { Change } from '../audit-log/audit-log.ts'
import type { Db, Tx } from '../database/database.ts'
import { withoutLimit } from '../database/wait-limits.ts'
import { eraseAgain } from '../erasure/erasure.ts'
import type { ErasureSettings } from '../erasure/journal.ts'
import { listWithoutKeys } from '../members/key-checks.ts'
import { lockMembers } from '../members/locks.ts'
import { giveUpKeys } from '../members/lost-keys.ts'
import type { Owner } from '../sealing/member-keys.ts'

const membersAtOnce = 250

/**
 * Records that the keys of the members who have none are lost, and gives up what they sealed. Withdrawals stay as they are, since a bank
 * may have paid those that the books of before a restore still hold. May be killed and repeated. Erases the members of the journal before,
 * who are not lost.
 * @param record writes to the audit log
 * @returns the ids of the members
 */
export async function giveUpLostKeys(
  db: Db,
  {
    erasures,
    now,
    record,
  }: { erasures: ErasureSettings; now: Date; record: (tx: Tx, partnerId: string, change: Change) => Promise<void> },
): Promise<string[]> {
  await eraseAgain(db, erasures)
  const all: string[] = []
  for (let after: Owner | undefined; ; ) {
    const beyond = after
    const lost = await withoutLimit(db, tx => listWithoutKeys(tx, { after: beyond, take: membersAtOnce }))
    after = lost.at(-1)
    if (after === undefined) return all
    for (const [partnerId, members] of Map.groupBy(lost, each => each.partnerId)) {
      const memberIds = members.map(({ memberId }) => memberId)
      const givenUp = await db.transaction().execute(async tx => {
        await lockMembers(tx, { partnerId, memberIds })
        const ids = await giveUpKeys(tx, { partnerId, memberIds, now })
        for (const resourceId of ids)
          await record(tx, partnerId, { action: 'member.lose_keys', resourceId, details: {} })
        return ids
      })
      all.push(...givenUp)
    }
  }
}
