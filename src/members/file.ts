import { toColumns } from '../bank-accounts/rules.ts'
import { csvLines } from '../csv.ts'
import type { Member } from './rules.ts'
import { type Column, columns } from './schema.ts'

/**
 * The header of a file of members, and nothing that could be imported by mistake. It begins with a byte order mark, by which
 * Excel opens, and saves, the file as UTF-8.
 */
export const template = `\ufeff${csvLines([[...columns]])}`

/** Members as a file, piece by piece; to import it again changes nothing. */
export async function* fileOf(pieces: AsyncIterable<Member[]>): AsyncGenerator<string> {
  yield csvLines([[...columns]])
  for await (const members of pieces) yield csvLines(members.map(cellsOf))
}

function cellsOf({ accountDetails, ...member }: Member): string[] {
  const account = toColumns(accountDetails)
  const cells: Record<Column, string | null> = {
    ...{ email: member.email, first_name: member.firstName, last_name: member.lastName, phone: member.phone },
    ...{ tier: member.tier, worker_id: member.workerId, sort_code: account.sortCode },
    ...{ account_number: account.accountNumber, account_holder: account.accountHolder, iban: account.iban },
    ...{ dob: member.dob, gender: member.gender, enable_payroll: String(member.enablePayroll) },
  }
  return columns.map(column => cells[column] ?? '')
}
