import { csvLines } from '../tabular/tabular.ts'
import { columns } from './fields.ts'
import { fileCells } from './rows.ts'
import type { Member } from './rules.ts'

/**
 * The header of a member file, without rows that could be imported by mistake. The byte order mark makes Excel open and save the
 * file as UTF-8.
 */
export const template = `\ufeff${csvLines([[...columns]])}`

/** Streams members as a CSV file. Importing it again changes nothing. */
export async function* fileOf(pieces: AsyncIterable<Member[]>): AsyncGenerator<string> {
  yield csvLines([[...columns]])
  for await (const members of pieces) yield csvLines(members.map(member => fileCells(member)))
}
