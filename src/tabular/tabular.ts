import { open } from 'node:fs/promises'
import { readCsv } from './read-csv.ts'
import { readXlsx } from './read-xlsx.ts'

export { FileFault } from './fault.ts'
export { plain, readHeader } from './header.ts'
export { limits } from './limits.ts'
export { detectDelimiter } from './read-csv.ts'
export { csvLines, unescaped } from './write-csv.ts'

/**
 * What one cell holds. From CSV it is always text, '' when it is empty. From XLSX it is what the workbook says: text, a
 * number, a boolean, a calendar day, or null when it is empty; an error of a formula is its text, such as '#N/A'.
 */
export type Cell = string | number | boolean | { day: string } | null

/**
 * @property row as a spreadsheet counts: the header is row 1, blank rows count, and a line break within quotes does not
 * @property fault what is wrong with this row alone, for the person who made the file; its cells may be cut short
 */
export type Row = { row: number; cells: Cell[]; fault?: string }

/**
 * Reads a file from the top. The first row is the header and must not be blank; blank rows below it are passed over. Every
 * row without a fault has as many cells as the header.
 * @returns batches of at most `limits.batchRowsMax` rows, the header first
 * @throws FileFault when the file cannot be read (further); the rows handed over before it are as they are
 */
export async function* readRows({ kind, ...file }: Source): AsyncGenerator<Row[]> {
  const handle = 'path' in file ? await open(file.path) : undefined
  const fd = 'path' in file ? (handle?.fd ?? -1) : file.fd
  try {
    yield* kind === 'csv' ? readCsv(fd) : readXlsx(fd)
  } finally {
    await handle?.close()
  }
}

/** A file by its path, or by the descriptor of an open one, which stays open. */
export type Source = { kind: 'csv' | 'xlsx' } & ({ path: string } | { fd: number })
