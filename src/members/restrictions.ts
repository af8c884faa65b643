import type { BankAccount } from '../bank-accounts/rules.ts'
import { sql, type Tx } from '../database/database.ts'
import { sealerOf } from '../sealing/held.ts'
import type { OfMember } from './locks.ts'
import { memberNotFound } from './rules.ts'
import { Fingerprints } from './sealing.ts'

/**
 * Why a member cannot withdraw after a bank refused or returned a payment. `account_refused` ends when the account is changed,
 * and `review` when the operator releases the member.
 */
export type Restriction = 'account_refused' | 'review'

/** The reasons of a member's restrictions, in the words of the bank; null where there is none. */
export type Restrictions = { accountRefused: string | null; reviewReason: string | null }

type NewRestriction = OfMember & { restriction: Restriction; account: BankAccount; reason: string }

/**
 * Restricts a locked member, unless the member was erased. If the account was changed since the payment, the new account is not refused: the bank's reason is
 * not about it.
 * @param account the account that the payment was made to
 */
export async function restrict(
  tx: Tx,
  { partnerId, memberId, restriction, account, reason }: NewRestriction,
): Promise<void> {
  if (restriction === 'review') {
    await sql`
      update members set review_reason = ${reason}
       where partner_id = ${partnerId} and id = ${memberId} and erased_at is null`.execute(tx)
    return
  }
  await sql`
    update members set account_refused = ${reason}
     where partner_id = ${partnerId} and id = ${memberId}
       and account_details_fingerprint = any(${new Fingerprints(sealerOf(tx), partnerId).ofAccount(account)}::bytea[])`.execute(
    tx,
  )
}

/**
 * Ends all restrictions of a member, even if a refused account has not changed.
 * @returns the restrictions that were in force
 * @throws Problem `MemberNotFound`
 */
export async function release(tx: Tx, { partnerId, memberId }: OfMember): Promise<Restrictions> {
  const before = await tx
    .selectFrom('members')
    .select(['accountRefused', 'reviewReason'])
    .where('partnerId', '=', partnerId)
    .where('id', '=', memberId)
    .where('erasedAt', 'is', null)
    .forNoKeyUpdate()
    .executeTakeFirst()
  if (before === undefined) throw memberNotFound(memberId)
  await tx
    .updateTable('members')
    .set({ accountRefused: null, reviewReason: null })
    .where('partnerId', '=', partnerId)
    .where('id', '=', memberId)
    .execute()
  return before
}
