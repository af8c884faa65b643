import type { Reader } from '../database/database.ts'
import { Recent } from '../kernel/recent.ts'
import { sealerOf } from '../sealing/held.ts'
import { type MemberKey, type Owner, openMemberKey } from '../sealing/member-keys.ts'
import type { Sealer } from '../sealing/sealer.ts'
import type { BankAccount } from './rules.ts'

/** An account as stored, and the wrapped key that opens it; null if there is no account, or the key was destroyed. */
export type StoredAccount = { account: Buffer | null; paymentKey: Buffer | null }

export function sealAccount(key: MemberKey, account: BankAccount): Buffer {
  return key.seal(JSON.stringify(account), 'account')
}

// An intent is usually completed within seconds, and each of the two opens the same account. Nothing is returned for a key that was
// destroyed in the database meanwhile, and the opened accounts are forgotten within four seconds.
const opened = new Recent<BankAccount>({ periodMs: 2_000, countMax: 20_000 })

/** @throws Error if the account or the key was changed, or belongs to another member */
export function openAccount(sealer: Sealer, { account, paymentKey }: StoredAccount, owner: Owner): BankAccount | null {
  if (account === null || paymentKey === null) return null
  // Whose they are is part of both values, but only opening them tests it.
  const name = `${owner.partnerId} ${owner.memberId} ${paymentKey.toString('latin1')}${account.toString('latin1')}`
  const known = opened.get(name)
  if (known !== undefined) return known
  const key = openMemberKey(sealer, 'payment', paymentKey, owner)
  const fresh: BankAccount = Object.freeze(JSON.parse(key.open(account, 'account')))
  opened.set(name, fresh)
  return fresh
}

/** The account of an intent. @throws Error also if the key was destroyed */
export function requireAccount(db: Reader, stored: StoredAccount, owner: Owner): BankAccount {
  const account = openAccount(sealerOf(db), stored, owner)
  if (account === null) throw new Error(`The key of the account of ${owner.memberId} was destroyed`)
  return account
}
