import type { Column } from '../members/fields.ts'
import { type ProfileCell, plainColumns } from '../members/rows.ts'
import { fingerprintColumns, type Sealed } from '../members/sealing.ts'

type OwnCells = {
  partnerId: string
  importId: string
  row: number
  newMemberId: string
  faults: string | null
  sealed: Buffer
}

const ownColumns: readonly { name: string; key: keyof OwnCells }[] = [
  { name: 'partner_id', key: 'partnerId' },
  { name: 'import_id', key: 'importId' },
  { name: 'row', key: 'row' },
  { name: 'new_member_id', key: 'newMemberId' },
  { name: 'faults', key: 'faults' },
  { name: 'sealed', key: 'sealed' },
]

const copiedColumns = [...[...ownColumns, ...plainColumns].map(({ name }) => name), ...fingerprintColumns]

export const copyStatement = `copy member_import_rows (${copiedColumns.join(', ')}) from stdin`

/** Formats a row of a file as a line for `copyStatement`, in COPY's text format, without the line end. */
export function copyLine(
  own: OwnCells,
  { plain, fingerprints }: { plain: (column: Column) => ProfileCell; fingerprints: Sealed },
): string {
  // Joined, not concatenated: that would build forty intermediate strings per row.
  const cells = ownColumns.map(({ key }) => escaped(own[key]))
  for (const { name } of plainColumns) cells.push(escaped(plain(name)))
  for (const name of fingerprintColumns) cells.push(escaped(fingerprints[name] ?? null))
  return cells.join('\t')
}

function escaped(cell: ProfileCell | number | Buffer): string {
  if (cell === null) return '\\N'
  if (Buffer.isBuffer(cell)) return `\\\\x${cell.toString('hex')}`
  if (typeof cell !== 'string') return String(cell)
  return special.test(cell) ? cell.replace(/[\\\t\n\r]/g, letter => escapes[letter] ?? '') : cell
}

const special = /[\\\t\n\r]/
const escapes: Record<string, string> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' }
