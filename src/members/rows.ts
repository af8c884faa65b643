import { fromColumns, toColumns } from '../bank-accounts/rules.ts'
import type { Reader } from '../database/database.ts'
import { type Member, memberNotFound, type Profile } from './rules.ts'

/** A profile as the columns of its row. */
export function columnsOf({ accountDetails, ...profile }: Profile) {
  return { ...profile, ...toColumns(accountDetails) }
}

/** Members of a partner with what `toMember` reads. */
export function select(db: Reader, partnerId: string) {
  return db
    .selectFrom('members')
    .select(['id', 'status', 'email', 'firstName', 'lastName', 'phone', 'tier', 'workerId'])
    .select(['accountHolder', 'sortCode', 'accountNumber', 'iban', 'enablePayroll', 'dob', 'gender'])
    .where('partnerId', '=', partnerId)
}

type Row = NonNullable<Awaited<ReturnType<ReturnType<typeof select>['executeTakeFirst']>>>

/** @throws Problem `MemberNotFound` when there is no row */
export function toMember(row: Row | undefined, memberId: string): Member {
  if (row === undefined) throw memberNotFound(memberId)
  const { accountHolder, sortCode, accountNumber, iban, ...member } = row
  return { ...member, accountDetails: fromColumns({ accountHolder, sortCode, accountNumber, iban }) }
}
