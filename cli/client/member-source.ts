import { stat } from 'node:fs/promises'
import path from 'node:path'
import { mediaTypes } from '../../src/contract/media-types.ts'
import type { TableKind } from '../../src/tabular/tabular.ts'

/** A member file as given on the command line. */
export type MemberFile = { path: string; mediaType: string }

/** The same file with its state when it was first read. */
export type MemberSource = MemberFile & { kind: TableKind; bytes: number; changedAtMs: number }

/** The media type by file extension; undefined if unsupported. */
export function mediaTypeOf(file: string): string | undefined {
  const ending = path.extname(file).toLowerCase()
  if (ending === '.xlsx') return mediaTypes.xlsx
  return ['.csv', '.txt', '.tsv'].includes(ending) ? mediaTypes.csv : undefined
}

/** @throws Error if there is no such file */
export async function lookAt(file: MemberFile): Promise<MemberSource> {
  const found = await stat(file.path).catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? new Error(`There is no file ${file.path}`, { cause: error }) : error
  })
  if (!found.isFile()) throw new Error(`${file.path} is not a file`)
  const kind = file.mediaType === mediaTypes.xlsx ? 'xlsx' : 'csv'
  return { ...file, kind, bytes: found.size, changedAtMs: found.mtimeMs }
}

/** @throws Error if the file has changed since it was checked: the confirmation was for another list */
export async function requireUnchanged(source: MemberSource): Promise<void> {
  const { bytes, changedAtMs } = await lookAt(source)
  if (bytes === source.bytes && changedAtMs === source.changedAtMs) return
  throw new Error(`${source.path} has changed since it was checked; nothing was imported, run the command again`)
}
