import { fromColumns, toColumns } from '../bank-accounts/rules.ts'
import { type Reader, sql } from '../database/database.ts'
import {
  byColumn,
  type Column,
  type ColumnKey,
  columnKeys,
  columnSpecs,
  columns,
  keyOf,
  type Profile,
} from './fields.ts'
import { type Member, memberNotFound } from './rules.ts'

export type ProfileCell = string | boolean | null

/** A profile by its columns, in the members table or a file. */
export type ProfileRow = Record<ColumnKey, ProfileCell>

export function columnsOf({ accountDetails, ...profile }: Profile) {
  return { ...profile, ...toColumns(accountDetails) }
}

/** Returns a function that gives the cell of each column of a profile. */
export function cellsOf(profile: Profile): (column: Column) => ProfileCell {
  const account = toColumns(profile.accountDetails)
  return column => {
    const { key, field } = specOf[column]
    // A column holds the field of its name, or a part of the account.
    return field === 'accountDetails' ? account[key as keyof typeof account] : profile[field]
  }
}

const specOf = byColumn(spec => spec)

/** Selects a partner's members with the columns that `toMember` reads. */
export function select(db: Reader, partnerId: string) {
  return db
    .selectFrom('members')
    .select(['id', 'status', ...columnKeys])
    .where('partnerId', '=', partnerId)
}

type MemberRow = NonNullable<Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirst']>>>

/** @throws Problem `MemberNotFound` if there is no row */
export function toMember(row: MemberRow | undefined, memberId: string): Member {
  if (row === undefined) throw memberNotFound(memberId)
  const { accountHolder, sortCode, accountNumber, iban, ...member } = row
  return { ...member, accountDetails: fromColumns({ accountHolder, sortCode, accountNumber, iban }) }
}

/** The cells of a row of a file, in the order of the template. */
export function fileCells(row: ProfileRow, only: readonly Column[] = columns): string[] {
  return only.map(name => String(row[keyOf[name]] ?? ''))
}

/** SQL for the columns of a profile, qualified with the table if one is given. */
export function profileColumns(table?: string) {
  return sql.raw(columnSpecs.map(({ name }) => (table === undefined ? name : `${table}.${name}`)).join(', '))
}

/** SQL for `column = source.column` for each column of a profile. */
export function profileAssignments(source: string) {
  return sql.raw(columnSpecs.map(({ name }) => `${name} = ${source}.${name}`).join(', '))
}

/** SQL for a relation of members with their id and profile columns. */
export function relationOf(members: Member[], alias: string) {
  const rows = members.map(({ status: _, id, ...profile }) => ({ id, row: columnsOf(profile) as ProfileRow }))
  const lists = columnSpecs.map(({ key, sqlType }) => sql`${rows.map(({ row }) => row[key])}::${sql.raw(sqlType)}[]`)
  return sql`unnest(${rows.map(({ id }) => id)}::text[], ${sql.join(lists)})
    as ${sql.raw(alias)} (id, ${profileColumns()})`
}
