import type { Reader } from '../database/database.ts'
import { sealerOf } from '../sealing/held.ts'
import { type MemberKey, type Owner, openMemberKey } from '../sealing/member-keys.ts'
import type { Sealer } from '../sealing/sealer.ts'
import type { BankAccount } from './rules.ts'

/** An account as stored, and the wrapped key that opens it; null if there is no account, or the key was destroyed. */
export type StoredAccount = { account: Buffer | null; paymentKey: Buffer | null }

export function sealAccount(key: MemberKey, account: BankAccount): Buffer {
  return key.seal(JSON.stringify(account), 'account')
}

/** @throws Error if the account or the key was changed, or belongs to another member */
export function openAccount(sealer: Sealer, { account, paymentKey }: StoredAccount, owner: Owner): BankAccount | null {
  if (account === null || paymentKey === null) return null
  const key = openMemberKey(sealer, 'payment', paymentKey, owner)
  return JSON.parse(key.open(account, 'account'))
}

/** The account of an intent. @throws Error also if the key was destroyed */
export function requireAccount(db: Reader, stored: StoredAccount, owner: Owner): BankAccount {
  const account = openAccount(sealerOf(db), stored, owner)
  if (account === null) throw new Error(`The key of the account of ${owner.memberId} was destroyed`)
  return account
}
