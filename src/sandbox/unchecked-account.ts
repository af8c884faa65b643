import type { BankAccount } from '../bank-accounts/rules.ts'
import type { Tx } from '../database/database.ts'
import { type Decision, writeAll } from '../members/changes.ts'
import { lockMembers } from '../members/locks.ts'
import * as members from '../members/members.ts'

/** Sets a member's account without checking it, as legacy data might have it. Demonstrates failing payouts. */
export async function setUncheckedAccount(
  tx: Tx,
  { partnerId, memberId, account, now }: { partnerId: string; memberId: string; account: BankAccount; now: Date },
): Promise<void> {
  await lockMembers(tx, { partnerId, memberIds: [memberId] })
  const before = await members.find(tx, { partnerId, memberId })
  const after = { ...before, accountDetails: account }
  const decision: Decision = { before, after, changed: ['accountDetails'], steps: [] }
  await writeAll(tx, { partnerId, decisions: [decision], instructedAt: now, now })
}
