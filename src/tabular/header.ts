import type { Cell } from './rows.ts'

/** What a header says: the column of each cell, null for one that is `ignored`. With faults it cannot be used. */
export type Header<Column extends string> = { columns: (Column | null)[]; ignored: (string | null)[]; faults: string[] }

/**
 * Reads a header. Upper and lower case, spaces, hyphens and underscores of names do not matter.
 * @param ignored further columns that may be there, and are not read
 * @param required the columns that must be there, given whether others are
 */
export function readHeader<Column extends string>(
  cells: Cell[],
  {
    known,
    ignored,
    required,
  }: { known: readonly Column[]; ignored: readonly string[]; required: (has: (column: Column) => boolean) => Column[] },
): Header<Column> {
  const names = cells.map(cell => String(cell ?? '').trim())
  const byName = new Map(known.map(column => [plain(column), column]))
  const columns = names.map(name => byName.get(plain(name)) ?? null)
  const passedOver = names.map(name => ignored.find(each => plain(each) === plain(name)) ?? null)
  // Spreadsheets like to add empty columns at the end.
  const unknown = names.filter(
    (_, index) => columns[index] === null && passedOver[index] === null && names.slice(index).some(each => each !== ''),
  )
  const has = (column: Column) => columns.includes(column)
  const repeated = known.filter(column => columns.filter(each => each === column).length > 1)
  const missing = required(has).filter(column => !has(column))
  const faults = [
    ...[...new Set(missing)].map(column => `the column ${column} is missing`),
    ...repeated.map(column => `the column ${column} is there twice`),
    ...unknown.map(name => `the column ${JSON.stringify(name.slice(0, 60))} is not known`),
  ]
  return { columns, ignored: passedOver, faults }
}

/** A name of a column without what does not matter. */
export function plain(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, '')
}
