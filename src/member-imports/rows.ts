import { type Reader, sql } from '../database/database.ts'
import type { MemberCommand } from '../members/changes.ts'
import type { PartialProfile, SealedField } from '../members/fields.ts'
import { plainColumns } from '../members/rows.ts'
import { openAll, type StoredProfile } from '../members/sealing.ts'
import { sealerOf } from '../sealing/held.ts'

/** A row before `rowReader` opens it. @property sealedFor the member whose keys seal its fields, if there is one */
export type SealedRow<Row extends PartialProfile> = Omit<Row, SealedField> &
  StoredProfile & { sealedFor: string | null }

/** SQL for the columns of a stored row of a file that `rowReader` reads. */
export const rowColumns = (table: string) =>
  columnsOf(table, { keys: `${table}.profile_key, ${table}.payment_key`, sealedFor: 'new_member_id' })

/** Like `rowColumns`, for a row of `members` and the one of `member_keys`. */
export const memberColumns = (table: string, keys: string) =>
  columnsOf(table, { keys: `${keys}.profile_key, ${keys}.payment_key`, sealedFor: 'id' })

function columnsOf(table: string, { keys, sealedFor }: { keys: string; sealedFor: string }) {
  const names = [...plainColumns.map(({ name }) => name), 'profile', 'account', 'email_fingerprint']
  return sql.raw(`${names.map(name => `${table}.${name}`).join(', ')}, ${keys}, ${table}.${sealedFor} as sealed_for`)
}

const nothing: Pick<PartialProfile, SealedField> = {
  email: null,
  phone: null,
  workerId: null,
  dob: null,
  gender: null,
  accountDetails: null,
}

/** Returns a function that opens rows. The sealed fields are null if there is no member, or if the member’s keys were destroyed. */
export function rowReader<Row extends PartialProfile>(db: Reader, partnerId: string): (row: SealedRow<Row>) => Row {
  const sealer = sealerOf(db)
  return ({ profile, account, profileKey, paymentKey, sealedFor, ...row }) => {
    const stored = { profile, account, profileKey, paymentKey }
    const opened = sealedFor === null ? undefined : openAll(sealer, stored, { partnerId, memberId: sealedFor })
    // TypeScript does not follow that the sealed fields complete the row.
    return { ...row, ...(opened ?? nothing) } as unknown as Row
  }
}

/** Seals an action as it was requested, which names a person and their account. */
export function sealCommand(db: Reader, { partnerId, command }: { partnerId: string; command: MemberCommand }): Buffer {
  return sealerOf(db).seal(JSON.stringify(command), { kind: 'import-command', owner: partnerId })
}

export function openCommand(db: Reader, { partnerId, command }: { partnerId: string; command: Buffer }): MemberCommand {
  return JSON.parse(sealerOf(db).open(command, { kind: 'import-command', owner: partnerId }).toString())
}
