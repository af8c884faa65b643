import type { BankAccount } from '../bank-accounts/rules.ts'
import { openAccount, type StoredAccount, sealAccount } from '../bank-accounts/sealed-account.ts'
import { type Reader, sql } from '../database/database.ts'
import { mapInSlices } from '../kernel/pace.ts'
import { snakeCase } from '../kernel/text.ts'
import { sealerOf } from '../sealing/held.ts'
import { createMemberKey, type MemberKey, type Owner, openMemberKey } from '../sealing/member-keys.ts'
import type { SealedTable } from '../sealing/rewrap.ts'
import type { Sealer } from '../sealing/sealer.ts'
import { foldEmail } from './email.ts'
import { type Profile, type SealedField, sealedFields } from './fields.ts'

// How the sealed fields of a member are stored.

/** The columns of the wrapped keys of a member. */
const keySealings = [
  { name: 'profile_key', kind: 'profile-key' },
  { name: 'payment_key', kind: 'payment-key' },
] as const

/** The table with the keys of members. */
export const keysTable: SealedTable = {
  table: 'member_keys',
  key: [
    ['partner_id', 'text'],
    ['member_id', 'text'],
  ],
  columns: keySealings,
  owner: "partner_id || ' ' || member_id",
}

/** The column that holds the fingerprint of a field. */
export function fingerprintColumn(field: SealedField): string {
  return `${snakeCase(field)}_fingerprint`
}

/** The columns with the fingerprints by which sealed fields are compared without being opened. */
export const fingerprintColumns: readonly string[] = sealedFields.map(fingerprintColumn)

/** The column with the fingerprint that is made with the next key, while the key of fingerprints is rotated. */
export function nextColumn(name: string): string {
  return `${name}_next`
}

const valueColumns = ['profile', 'account']
const nextColumns = fingerprintColumns.map(nextColumn)

/** The columns that hold sealed fields, and their fingerprints. */
export const sealedColumns: readonly string[] = [...valueColumns, ...fingerprintColumns, ...nextColumns]

const keyColumns = keySealings.map(({ name }) => name)

/** The columns of sealed fields, and the keys of the member. */
export const sealedColumnsWithKeys: readonly string[] = [...sealedColumns, ...keyColumns]

/** The columns of sealed fields and keys without the fingerprints of the current key. */
export const columnsBesideFingerprints: readonly string[] = [...valueColumns, ...keyColumns, ...nextColumns]

/** A value for each of `sealedColumnsWithKeys`. */
export type Sealed = { readonly [column: string]: Buffer | null }

/** The fields that are sealed. */
export type SealedFields = Pick<Profile, SealedField>

/** The fields of a profile that are sealed together; the account is sealed with its own key. */
type SealedProfile = Omit<SealedFields, 'accountDetails'>

/** The columns from which the sealed fields of a member are opened. */
export type StoredProfile = StoredAccount & { profile: Buffer | null; profileKey: Buffer | null }

/** Seals the fields of a new member with new keys. @returns a value for each of `sealedColumnsWithKeys` */
export function sealNew(sealer: Sealer, fields: SealedFields, owner: Owner): Sealed {
  return { ...sealFingerprinted(sealer, fields, owner), ...fingerprintsOf(sealer, owner.partnerId, fields) }
}

/** Like `sealNew`, for fields whose fingerprints are stored elsewhere. @returns a value for each of `columnsBesideFingerprints` */
export function sealFingerprinted(sealer: Sealer, fields: SealedFields, owner: Owner): Sealed {
  const forProfile = createMemberKey(sealer, 'profile', owner)
  const forPayment = createMemberKey(sealer, 'payment', owner)
  return {
    profile_key: forProfile.wrapped,
    payment_key: forPayment.wrapped,
    ...seal(fields, { profileKey: forProfile.key, paymentKey: forPayment.key }),
    ...nextFingerprintsOf(sealer, owner.partnerId, fields),
  }
}

/** Seals the fields of members with the keys that they have. @throws Problem `Conflict` for a member whose keys are lost */
export async function sealChanged(
  db: Reader,
  { partnerId, members }: { partnerId: string; members: (Profile & { id: string })[] },
): Promise<Sealed[]> {
  const { rows } = await sql<{ memberId: string; profileKey: Buffer | null; paymentKey: Buffer | null }>`
    select member_id, profile_key, payment_key from member_keys
     where partner_id = ${partnerId} and member_id = any(${members.map(({ id }) => id)}::text[])`.execute(db)
  const sealer = sealerOf(db)
  const found = new Map(rows.map(row => [row.memberId, row]))
  return await mapInSlices(members, member => {
    const owner = { partnerId, memberId: member.id }
    const { profileKey = null, paymentKey = null } = found.get(member.id) ?? {}
    if (profileKey === null || paymentKey === null) throw new Error(`${member.id} has no keys`)
    return {
      profile_key: profileKey,
      payment_key: paymentKey,
      ...seal(member, {
        profileKey: openMemberKey(sealer, 'profile', profileKey, owner),
        paymentKey: openMemberKey(sealer, 'payment', paymentKey, owner),
      }),
      ...fingerprintsOf(sealer, partnerId, member),
      ...nextFingerprintsOf(sealer, partnerId, member),
    }
  })
}

function seal(fields: SealedFields, { profileKey, paymentKey }: { profileKey: MemberKey; paymentKey: MemberKey }) {
  const { accountDetails, email, phone, workerId, dob, gender } = fields
  const profile: SealedProfile = { email, phone, workerId, dob, gender }
  return {
    profile: profileKey.seal(JSON.stringify(profile), 'profile'),
    account: accountDetails && sealAccount(paymentKey, accountDetails),
  }
}

/** A value for each of `fingerprintColumns`. */
export function fingerprintsOf(sealer: Sealer, partnerId: string, fields: SealedFields): Sealed {
  return allOf(fields, parts => sealer.fingerprint([partnerId, ...parts]))
}

const withoutNext: Sealed = Object.fromEntries(nextColumns.map(name => [name, null]))

/** A value for each of the columns of `nextColumn`: null unless the key of fingerprints is rotated. */
export function nextFingerprintsOf(sealer: Sealer, partnerId: string, fields: SealedFields): Sealed {
  if (!sealer.isRotatingFingerprints) return withoutNext
  const next = allOf(fields, parts => sealer.nextFingerprint([partnerId, ...parts]))
  return Object.fromEntries(Object.entries(next).map(([name, value]) => [nextColumn(name), value]))
}

type Parts = readonly [field: SealedField, ...values: string[]]

function allOf(
  { email, phone, workerId, dob, gender, accountDetails }: SealedFields,
  hash: (parts: Parts) => Buffer | null,
): Sealed {
  const ofField = (field: SealedField, value: string | null) =>
    value === null ? null : hash([field, foldEmail(email), value])
  return {
    email_fingerprint: email === '' ? null : hash(partsOf.email(email)),
    worker_id_fingerprint: workerId === null ? null : hash(partsOf.workerId(workerId)),
    account_details_fingerprint: accountDetails && hash(partsOf.account(accountDetails)),
    // These have so few values that equal fingerprints would give them away, so they are equal only for members with the same e-mail.
    phone_fingerprint: ofField('phone', phone),
    dob_fingerprint: ofField('dob', dob),
    gender_fingerprint: ofField('gender', gender),
  }
}

const partsOf = {
  /** Equal for addresses that differ only in case. */
  email: (email: string): Parts => ['email', foldEmail(email)],
  workerId: (workerId: string): Parts => ['workerId', workerId],
  /** Equal for equal accounts of two members. */
  account(account: BankAccount): Parts {
    const number = 'iban' in account ? [account.iban] : [account.sortCode, account.accountNumber]
    return ['accountDetails', account.accountHolder, ...number]
  },
}

/** Opens the sealed fields of a member except the account; undefined if the key was destroyed. */
export function openProfile(
  sealer: Sealer,
  { profile, profileKey }: Pick<StoredProfile, 'profile' | 'profileKey'>,
  owner: Owner,
): SealedProfile | undefined {
  if (profile === null || profileKey === null) return undefined
  return JSON.parse(openMemberKey(sealer, 'profile', profileKey, owner).open(profile, 'profile'))
}

/** Opens all sealed fields of a member; undefined if the key was destroyed. */
export function openAll(sealer: Sealer, stored: StoredProfile, owner: Owner): SealedFields | undefined {
  const profile = openProfile(sealer, stored, owner)
  return profile && { ...profile, accountDetails: openAccount(sealer, stored, owner) }
}

/** The fingerprints by which a partner's values are found without being opened: two of each while their key is rotated. */
export class Fingerprints {
  readonly #sealer: Sealer
  readonly #partnerId: string

  constructor(sealer: Sealer, partnerId: string) {
    this.#sealer = sealer
    this.#partnerId = partnerId
  }

  /** Equal for addresses that differ only in case. */
  ofEmail(email: string): Buffer[] {
    return this.#of(partsOf.email(email))
  }

  ofWorkerId(workerId: string): Buffer[] {
    return this.#of(partsOf.workerId(workerId))
  }

  /** Equal accounts of two members have equal fingerprints. */
  ofAccount(account: BankAccount): Buffer[] {
    return this.#of(partsOf.account(account))
  }

  #of(parts: Parts): Buffer[] {
    return this.#sealer.fingerprintsToFind([this.#partnerId, ...parts])
  }
}

/**
 * SQL for the wrapped key that opens a member's accounts, in a statement with a row of a table that names the member.
 * @param options.partnerId the partner of all rows; by default that of each row, for statements about several partners
 */
export function paymentKeyOf(
  table: string,
  { memberId = 'id', partnerId }: { memberId?: string; partnerId?: string | undefined } = {},
) {
  return sql<Buffer | null>`
    (select k.payment_key from member_keys k
      where k.partner_id = ${partnerId ?? sql.raw(`${table}.partner_id`)} and k.member_id = ${sql.raw(`${table}.${memberId}`)})`
}
