import type { Cell } from './rows.ts'

/**
 * A parsed header: the column of each cell, or null for an `ignored` one, and the position of each column. A header with faults is
 * unusable.
 */
export type Header<Column extends string> = {
  columns: (Column | null)[]
  positions: Map<Column, number>
  ignored: (string | null)[]
  faults: string[]
}

/**
 * Reads a header. Case, spaces, hyphens and underscores in names are ignored.
 * @param ignored other columns that are accepted but not read
 * @param required returns the required columns, given the columns that are present
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
  // Spreadsheets often add empty columns at the end.
  const unknown = names.filter(
    (_, index) => columns[index] === null && passedOver[index] === null && names.slice(index).some(each => each !== ''),
  )
  const has = (column: Column) => columns.includes(column)
  const repeated = known.filter(column => columns.filter(each => each === column).length > 1)
  const missing = required(has).filter(column => !has(column))
  const faults = [
    ...[...new Set(missing)].map(column => `the column ${column} is missing`),
    ...repeated.map(column => `the column ${column} appears twice`),
    ...unknown.map(name => `the column ${JSON.stringify(name.slice(0, 60))} is not known`),
  ]
  const positions = new Map(columns.flatMap((column, index) => (column === null ? [] : [[column, index]])))
  return { columns, positions, ignored: passedOver, faults }
}

/** Normalises a column name for comparison. */
export function plain(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, '')
}
