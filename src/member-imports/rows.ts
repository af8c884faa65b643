import { type Reader, sql } from '../database/database.ts'
import type { MemberCommand } from '../members/changes.ts'
import type { PartialProfile, SealedField } from '../members/fields.ts'
import { plainColumns } from '../members/rows.ts'
import { openAll, type SealedFields, type StoredProfile } from '../members/sealing.ts'
import { sealerOf } from '../sealing/held.ts'
import { type ImportKey, openImportKey } from './import-key.ts'
import type { OfImport } from './rules.ts'

/**
 * A row before `openRows` opens it.
 * @property sealed the fields of a row of a file, sealed with the key of the import
 * @property sealedFor otherwise the member whose keys seal the fields, if there is one
 */
export type SealedRow<Row extends PartialProfile> = Omit<Row, SealedField> &
  StoredProfile & { sealed: Buffer | null; sealedFor: string | null }

const memberCells = ['profile', 'account', 'profile_key', 'payment_key'] as const

/** SQL for the columns of a stored row of a file that `openRows` reads. */
export const rowColumns = (table: string) =>
  columnsOf(table, [`${table}.sealed`, ...memberCells.map(name => `null::bytea as ${name}`), 'null as sealed_for'])

/** Like `rowColumns`, for a row of `members` and the one of `member_keys`. */
export const memberColumns = (table: string, keys: string) =>
  columnsOf(table, [
    ...['null::bytea as sealed', `${table}.profile`, `${table}.account`],
    ...[`${keys}.profile_key`, `${keys}.payment_key`, `${table}.id as sealed_for`],
  ])

function columnsOf(table: string, sealed: string[]) {
  const names = [...plainColumns.map(({ name }) => name), 'email_fingerprint']
  return sql.raw([...names.map(name => `${table}.${name}`), ...sealed].join(', '))
}

const nothing: Pick<PartialProfile, SealedField> = {
  email: null,
  phone: null,
  workerId: null,
  dob: null,
  gender: null,
  accountDetails: null,
}

/** Opens rows. The sealed fields are null if there is no member, or if the member’s keys were destroyed. */
export async function openRows<Row extends PartialProfile & { row: number | null }>(
  db: Reader,
  ofImport: OfImport,
  rows: SealedRow<Row>[],
): Promise<Row[]> {
  const sealer = sealerOf(db)
  const { partnerId } = ofImport
  // The key is deleted with the rows that it seals.
  const key = rows.some(({ sealed }) => sealed !== null) ? await openImportKey(db, ofImport) : undefined
  return rows.map(({ sealed, profile, account, profileKey, paymentKey, sealedFor, ...row }) => {
    const stored = { profile, account, profileKey, paymentKey }
    const ofMember = sealedFor === null ? undefined : openAll(sealer, stored, { partnerId, memberId: sealedFor })
    const opened = key === undefined || sealed === null ? ofMember : openRow(key, { row: Number(row.row), sealed })
    // TypeScript does not follow that the sealed fields complete the row.
    return { ...row, ...(opened ?? nothing) } as unknown as Row
  })
}

/** Seals the fields of a row of a file. */
export function sealRow(key: ImportKey, row: number, fields: SealedFields): Buffer {
  const { email, phone, workerId, dob, gender, accountDetails } = fields
  return key.seal(JSON.stringify({ email, phone, workerId, dob, gender, accountDetails }), `row ${row}`)
}

/** Opens a row that `sealRow` has sealed. */
export function openRow(key: ImportKey, { row, sealed }: { row: number; sealed: Buffer }): SealedFields {
  return JSON.parse(key.open(sealed, `row ${row}`))
}

/** Seals an action as it was requested, which names a person and their account. */
export function sealCommand(key: ImportKey, command: MemberCommand): Buffer {
  return key.seal(JSON.stringify(command), 'command')
}

export function openCommand(key: ImportKey, command: Buffer): MemberCommand {
  return JSON.parse(key.open(command, 'command'))
}
