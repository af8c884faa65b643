import { stringify } from 'csv-stringify/sync'

/** A cell to be written: text of unknown origin, or a number that is known to be one, in whatever notation. */
export type WrittenCell = string | bigint | { number: string } | null

/**
 * Rows as lines of a CSV file for people and their spreadsheets. Every text goes through `escapeFormulas`; the minus sign of a
 * number begins no formula.
 */
export function csvLines(
  rows: readonly (readonly WrittenCell[])[],
  { delimiter = ',' }: { delimiter?: string } = {},
): string {
  return stringify(
    rows.map(cells => cells.map(textOf)),
    // A reader may split at other delimiters, too. Source of the line end: RFC 4180, section 2.
    { delimiter, quoted_match: /[,;\t\r\n]/, record_delimiter: 'windows' },
  )
}

function textOf(cell: WrittenCell): string {
  if (cell === null) return ''
  if (typeof cell === 'bigint') return String(cell)
  return typeof cell === 'string' ? escapeFormulas(cell) : cell.number
}

/**
 * Puts an apostrophe before whatever a spreadsheet could take for a formula, and before what would lose its own apostrophe to
 * `unescaped`. A spreadsheet may split lines by the delimiter of its locale, whatever the file's is, and then quotes within a
 * line do not hold a cell together: so a cell can begin behind every comma, semicolon, tab and line break.
 * Source: OWASP, "CSV Injection"
 */
function escapeFormulas(cell: string): string {
  return sign.test(cell) ? cell.replace(formulaStart, "'") : cell
}

/** Removes the apostrophes that `escapeFormulas` has put in. */
export function unescaped(cell: string): string {
  return cell.includes("'") ? cell.replace(escapedStart, '') : cell
}

// Four signs begin a formula, also in full width; a tab or carriage return hides one.
const sign = /[=+\-@\t\r＝＋－＠]/
const formulaStart = /(?<=^|[,;\t\r\n])(?='*"*[=+\-@\t\r＝＋－＠])/g
const escapedStart = /(?<=^|[,;\t\r\n])'(?='*"*[=+\-@\t\r＝＋－＠])/g
