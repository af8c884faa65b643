import { openAccount, type StoredAccount } from '../bank-accounts/sealed-account.ts'
import { type Reader, sql } from '../database/database.ts'
import type { DB } from '../database/tables.ts'
import type { MemberCommand } from '../members/changes.ts'
import { plainColumns } from '../members/rows.ts'
import { sealerOf } from '../sealing/held.ts'

/** A stored row of a file, with its sealed account. */
export type SealedRow = Omit<
  DB['memberImportRows'],
  'partnerId' | 'importId' | 'newMemberId' | 'faults' | 'accountFingerprint' | 'paymentKey'
> &
  StoredAccount & { accountOf: string }

/** SQL for the columns of a stored row of a file that `rowReader` reads. */
export function rowColumns(table: string) {
  const names = [...plainColumns.map(({ name }) => name), 'account', 'payment_key', 'new_member_id as account_of']
  return sql.raw(names.map(name => `${table}.${name}`).join(', '))
}

/** Returns a function that opens rows. @property accountOf the member whose key seals the account */
export function rowReader(db: Reader, partnerId: string) {
  const sealer = sealerOf(db)
  return <Row extends StoredAccount & { accountOf: string | null }>({
    account,
    paymentKey,
    accountOf,
    ...row
  }: Row) => ({
    ...row,
    accountDetails:
      accountOf === null ? null : openAccount(sealer, { account, paymentKey }, { partnerId, memberId: accountOf }),
  })
}

/** Seals an action as it was requested, which names a person and their account. */
export function sealCommand(db: Reader, { partnerId, command }: { partnerId: string; command: MemberCommand }): Buffer {
  return sealerOf(db).seal(JSON.stringify(command), { kind: 'import-command', owner: partnerId })
}

export function openCommand(db: Reader, { partnerId, command }: { partnerId: string; command: Buffer }): MemberCommand {
  return JSON.parse(sealerOf(db).open(command, { kind: 'import-command', owner: partnerId }).toString())
}
