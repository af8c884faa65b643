import { open } from 'node:fs/promises'
import { readCsv } from './read-csv.ts'
import { readXlsx } from './read-xlsx.ts'
import type { Row, TableKind } from './rows.ts'

export { type AmountCells, readAmount } from './amounts.ts'
export { FileFault } from './fault.ts'
export { plain, readHeader } from './header.ts'
export { limits } from './limits.ts'
export { detectDelimiter } from './read-csv.ts'
export type { Cell, Row, TableKind } from './rows.ts'
export { csvLines, unescaped } from './write-csv.ts'

/**
 * Reads a file from the top. The first row is the header and must not be blank; blank rows below it are skipped. Every
 * row without a fault has as many cells as the header.
 * @returns batches of at most `limits.batchRowsMax` rows, the header first
 * @throws FileFault if the file cannot be read to its end; rows yielded before remain valid
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
export type Source = { kind: TableKind } & ({ path: string } | { fd: number })
