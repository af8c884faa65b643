import { type AccountColumns, toColumns } from '../bank-accounts/rules.ts'
import { type Reader, sql } from '../database/database.ts'
import { mapInSlices } from '../kernel/pace.ts'
import { sealerOf } from '../sealing/held.ts'
import {
  absentValues,
  byColumn,
  type Column,
  columnSpecs,
  columns,
  type FieldName,
  type PartialProfile,
  type Profile,
  type SealedField,
} from './fields.ts'
import type { Member } from './rules.ts'
import {
  columnsBesideFingerprints,
  openAll,
  openProfile,
  type Sealed,
  type SealedFields,
  type StoredProfile,
  sealChanged,
  sealedColumns,
  sealedColumnsWithKeys,
  sealFingerprinted,
  sealNew,
} from './sealing.ts'

export type ProfileCell = string | boolean | null

/** Returns a function that gives the cell of each column of a profile. */
export function cellsOf(profile: PartialProfile): (column: Column) => ProfileCell {
  const account = toColumns(profile.accountDetails)
  return column => {
    const { key, field } = specOf[column]
    // A column holds the field of its name, or a part of the account.
    return field === 'accountDetails' ? account[key as keyof AccountColumns] : profile[field]
  }
}

const specOf = byColumn(spec => spec)

/** The cells of a row of a file, in the order of the template. */
export function fileCells(profile: PartialProfile, only: readonly Column[] = columns): string[] {
  const cellOf = cellsOf(profile)
  return only.map(name => String(cellOf(name) ?? ''))
}

type PlainField = Exclude<FieldName, SealedField>

/** The columns that hold a field as it is, in the table `members` and in the rows of imports. */
export const plainColumns = columnSpecs.flatMap(({ field, sealedAs, ...spec }) =>
  sealedAs === undefined ? [{ ...spec, field: field as PlainField }] : [],
)

/** The columns that hold a profile. */
const storedColumns: readonly string[] = [...plainColumns.map(({ name }) => name), ...sealedColumns]

/** Selects a partner's members with the columns that `memberReader` reads. Erased members are not selected. */
export function select(db: Reader, partnerId: string) {
  return (
    db
      .selectFrom('members')
      // Looks up each member: a join might read the keys of all members.
      .leftJoinLateral(
        keys =>
          keys
            .selectFrom('memberKeys')
            .select(['profileKey', 'paymentKey'])
            .where('memberKeys.partnerId', '=', partnerId)
            .whereRef('memberKeys.memberId', '=', 'members.id')
            .limit(1)
            .as('keys'),
        join => join.onTrue(),
      )
      .select(['id', 'status', 'profile', 'account', 'profileKey', 'paymentKey'])
      .select(plainColumns.map(({ field }) => field))
      .where('members.partnerId', '=', partnerId)
      .where('members.erasedAt', 'is', null)
  )
}

type MemberRow = NonNullable<Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirst']>>>

/** Returns a function that opens the rows of a partner's members. */
export function memberReader(db: Reader, partnerId: string): (row: MemberRow) => Member {
  const sealer = sealerOf(db)
  return ({ profile, account, profileKey, paymentKey, ...plain }) => {
    const opened = openAll(sealer, { profile, account, profileKey, paymentKey }, { partnerId, memberId: plain.id })
    if (opened === undefined) throw new Error(`The keys of ${plain.id} were destroyed`)
    return { ...plain, ...opened }
  }
}

/** Like `memberReader`, without the account, whose key need not be opened. */
export function profileReader(db: Reader, partnerId: string) {
  const sealer = sealerOf(db)
  return ({ id: memberId, profile, profileKey }: Pick<StoredProfile, 'profile' | 'profileKey'> & { id: string }) => {
    const opened = openProfile(sealer, { profile, profileKey }, { partnerId, memberId })
    if (opened === undefined) throw new Error(`The keys of ${memberId} were destroyed`)
    return opened
  }
}

/** SQL for the columns of a profile. */
export const profileColumns = sql.raw(storedColumns.join(', '))

/** SQL for `column = source.column` for each column of a profile. A sealed account that does not change keeps its ciphertext. */
export function profileAssignments(source: string) {
  const others = storedColumns.filter(name => name !== 'account').map(name => `${name} = ${source}.${name}`)
  return sql.raw(`${others.join(', ')},
    account = case when members.account_details_fingerprint = ${source}.account_details_fingerprint
                     or members.account_details_fingerprint = ${source}.account_details_fingerprint_next
                     or members.account_details_fingerprint_next = ${source}.account_details_fingerprint_next
                   then members.account else ${source}.account end`)
}

/** SQL for the plain columns of a new member, from a relation `r` in which a column is null where it has the default. */
export const newPlainColumns = sql.join(
  plainColumns.map(({ name, field, sqlType }) => {
    const absent = (absentValues as Partial<Profile>)[field] ?? null
    const column = sql.raw(`r.${name}`)
    return absent === null ? column : sql`coalesce(${column}, ${absent}::${sql.raw(sqlType)}) as ${sql.raw(name)}`
  }),
)

type StoredMember = Profile & { id: string }

/** SQL for a relation of new members with their id, the columns of their profile and their new keys. */
export async function newMembers(db: Reader, { partnerId, members }: { partnerId: string; members: StoredMember[] }) {
  const sealer = sealerOf(db)
  return relationOf(
    members,
    await mapInSlices(members, member => sealNew(sealer, member, { partnerId, memberId: member.id })),
  )
}

/** SQL for a relation `s` of the ids of new members, with `columnsBesideFingerprints`: for members whose other columns are stored. */
export async function sealedRows(
  db: Reader,
  { partnerId, rows }: { partnerId: string; rows: (SealedFields & { id: string })[] },
) {
  const sealer = sealerOf(db)
  const sealed = await mapInSlices(rows, row => sealFingerprinted(sealer, row, { partnerId, memberId: row.id }))
  const names = columnsBesideFingerprints
  return sql`unnest(${rows.map(({ id }) => id)}::text[], ${listsOf(sealed, names)}) as s (id, ${sql.raw(names.join(', '))})`
}

/** Like `newMembers`, for members who exist, sealed with the keys that they have. */
export async function changedMembers(db: Reader, of: { partnerId: string; members: StoredMember[] }) {
  return relationOf(of.members, await sealChanged(db, of))
}

function relationOf(members: StoredMember[], sealed: Sealed[]) {
  const lists = [
    ...plainColumns.map(({ field, sqlType }) => sql`${members.map(member => member[field])}::${sql.raw(sqlType)}[]`),
    listsOf(sealed, sealedColumnsWithKeys),
  ]
  const names = [...plainColumns.map(({ name }) => name), ...sealedColumnsWithKeys]
  return sql`unnest(${members.map(({ id }) => id)}::text[], ${sql.join(lists)}) as p (id, ${sql.raw(names.join(', '))})`
}

function listsOf(sealed: Sealed[], names: readonly string[]) {
  return sql.join(names.map(name => sql`${sealed.map(each => each[name])}::bytea[]`))
}
