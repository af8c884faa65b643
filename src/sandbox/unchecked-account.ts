import type { BankAccount } from '../bank-accounts/rules.ts'
import type { Tx } from '../database/database.ts'
import { writeAll } from '../members/changes.ts'
import { lockMembers } from '../members/locks.ts'
import * as members from '../members/members.ts'

/** Sets a member's account without checking it, as legacy data might have it. Demonstrates failing payouts. */
export async function setUncheckedAccount(
  tx: Tx,
  { partnerId, memberId, account, now }: { partnerId: string; memberId: string; account: BankAccount; now: Date },
): Promise<void> {
  await lockMembers(tx, { partnerId, memberIds: [memberId] })
  const before = await members.find(tx, { partnerId, memberId })
  const change = { before, after: { ...before, accountDetails: account } }
  await writeAll(tx, { partnerId, changes: [change], instructedAt: now, now })
}
