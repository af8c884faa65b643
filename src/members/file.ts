import { csvLines } from '../csv.ts'
import { columnsOf } from './rows.ts'
import type { Member } from './rules.ts'
import { cellOf, columns } from './schema.ts'

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

function cellsOf({ id: _id, status: _status, ...profile }: Member): string[] {
  const row = columnsOf(profile)
  return columns.map(column => cellOf(row, column))
}
