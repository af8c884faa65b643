import { type AccountColumns, toColumns } from '../bank-accounts/rules.ts'
import { fingerprintOf, openAccount, sealAccount } from '../bank-accounts/sealed-account.ts'
import { type Reader, sql } from '../database/database.ts'
import { sealerOf } from '../sealing/held.ts'
import { createMemberKey, type MemberKey, openMemberKey } from '../sealing/member-keys.ts'
import type { Sealer } from '../sealing/sealer.ts'
import { byColumn, type Column, type ColumnKey, columnSpecs, columns, type FieldName, type Profile } from './fields.ts'
import type { Member } from './rules.ts'

export type ProfileCell = string | boolean | null

/** Returns a function that gives the cell of each column of a profile. */
export function cellsOf(profile: Profile): (column: Column) => ProfileCell {
  const account = toColumns(profile.accountDetails)
  return column => {
    const { key, field } = specOf[column]
    // A column holds the field of its name, or a part of the account.
    return field === 'accountDetails' ? account[key as keyof AccountColumns] : profile[field]
  }
}

const specOf = byColumn(spec => spec)

/** The columns that hold a field as it is, in the table `members` and in the rows of imports. */
export const plainColumns = columnSpecs.filter(({ field }) => field !== 'accountDetails')

/** The columns that hold a profile, sealed or as it is. @property defaultOf the field whose default an absent value has */
export const storedColumns: readonly { name: string; defaultOf?: FieldName }[] = [
  ...plainColumns.map(({ name, field, emptyCell }) => ({ name, ...(emptyCell === 'keeps' && { defaultOf: field }) })),
  { name: 'account' },
  { name: 'account_fingerprint' },
]

/** An account as stored. */
type SealedAccount = { account: Buffer | null; accountFingerprint: Buffer | null }

/** Seals the account of a profile. */
export function sealedAccountOf(
  { accountDetails: account }: Pick<Profile, 'accountDetails'>,
  { sealer, key, partnerId }: { sealer: Sealer; key: MemberKey; partnerId: string },
): SealedAccount {
  if (account === null) return { account: null, accountFingerprint: null }
  return { account: sealAccount(key, account), accountFingerprint: fingerprintOf(sealer, { partnerId, account }) }
}

/** SQL for the wrapped key that opens a member's accounts, in a statement with a row of a table that names the member. */
export function paymentKeyOf(table: string, { memberId = 'id' }: { memberId?: string } = {}) {
  return sql<Buffer | null>`
    (select k.payment_key from member_keys k
      where k.partner_id = ${sql.raw(`${table}.partner_id`)} and k.member_id = ${sql.raw(`${table}.${memberId}`)})`
}

/** Selects a partner's members with the columns that `toMember` reads. */
export function select(db: Reader, partnerId: string) {
  return db
    .selectFrom('members')
    .select(['id', 'status', 'account', ...plainColumns.map(({ key }) => key as PlainKey)])
    .select(paymentKeyOf('members').as('paymentKey'))
    .where('partnerId', '=', partnerId)
}

type PlainKey = Exclude<ColumnKey, keyof AccountColumns>
type MemberRow = NonNullable<Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirst']>>>

/** Returns a function that opens the rows of a partner's members. */
export function memberReader(db: Reader, partnerId: string): (row: MemberRow) => Member {
  const sealer = sealerOf(db)
  return ({ account, paymentKey, ...member }) => ({
    ...member,
    accountDetails: openAccount(sealer, { account, paymentKey }, { partnerId, memberId: member.id }),
  })
}

/** The cells of a row of a file, in the order of the template. */
export function fileCells(profile: Profile, only: readonly Column[] = columns): string[] {
  const cellOf = cellsOf(profile)
  return only.map(name => String(cellOf(name) ?? ''))
}

/** SQL for the columns of a profile, qualified with the table if one is given. */
export function profileColumns(table?: string) {
  return sql.raw(storedColumns.map(({ name }) => (table === undefined ? name : `${table}.${name}`)).join(', '))
}

/** SQL for `column = source.column` for each column of a profile. A sealed account that does not change keeps its ciphertext. */
export function profileAssignments(source: string) {
  const plain = plainColumns.map(({ name }) => `${name} = ${source}.${name}`)
  return sql.raw(`${plain.join(', ')}, account_fingerprint = ${source}.account_fingerprint,
    account = case when members.account_fingerprint is not distinct from ${source}.account_fingerprint
                   then members.account else ${source}.account end`)
}

/** SQL for a relation of new members with their id, the columns of their profile and the wrapped key of their account. */
export function newMembers(db: Reader, { partnerId, members }: { partnerId: string; members: Member[] }) {
  const sealer = sealerOf(db)
  return relationOf(
    members.map(member => {
      const { key, wrapped } = createMemberKey(sealer, { partnerId, memberId: member.id })
      return { ...sealedAccountOf(member, { sealer, key, partnerId }), member, paymentKey: wrapped }
    }),
  )
}

/** Like `newMembers`, for members who exist. Their accounts are sealed with the keys that they have. */
export async function changedMembers(db: Reader, { partnerId, members }: { partnerId: string; members: Member[] }) {
  const sealer = sealerOf(db)
  const { rows } = await sql<{ memberId: string; paymentKey: Buffer | null }>`
    select member_id, payment_key from member_keys
     where partner_id = ${partnerId} and member_id = any(${members.map(({ id }) => id)}::text[])`.execute(db)
  const keys = new Map(rows.map(({ memberId, paymentKey }) => [memberId, paymentKey]))
  return relationOf(
    members.map(member => {
      const paymentKey = keys.get(member.id)
      if (paymentKey == null) throw new Error(`${member.id} has no key`)
      const key = openMemberKey(sealer, paymentKey, { partnerId, memberId: member.id })
      return { ...sealedAccountOf(member, { sealer, key, partnerId }), member, paymentKey }
    }),
  )
}

function relationOf(rows: ({ member: Member; paymentKey: Buffer } & SealedAccount)[]) {
  const lists = plainColumns.map(
    ({ key, sqlType }) => sql`${rows.map(({ member }) => member[key as PlainKey])}::${sql.raw(sqlType)}[]`,
  )
  return sql`unnest(
    ${rows.map(({ member }) => member.id)}::text[], ${sql.join(lists)}, ${rows.map(({ account }) => account)}::bytea[],
    ${rows.map(({ accountFingerprint }) => accountFingerprint)}::bytea[],
    ${rows.map(({ paymentKey }) => paymentKey)}::bytea[]) as p (id, ${profileColumns()}, payment_key)`
}
