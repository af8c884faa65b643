import { stringify } from 'csv-stringify/sync'

/** A cell to be written: text of unknown origin, or a formatted number. */
export type WrittenCell = string | bigint | { number: string } | null

/**
 * Formats rows as lines of a CSV file that is safe to open in a spreadsheet. Texts go through `escapeFormulas`. Numbers do not,
 * because a minus sign before a number is not a formula.
 */
export function csvLines(
  rows: readonly (readonly WrittenCell[])[],
  { delimiter = ',' }: { delimiter?: string } = {},
): string {
  return stringify(
    rows.map(cells => cells.map(textOf)),
    // A reader may also split at other delimiters. Source of the line end: RFC 4180, section 2.
    { delimiter, quoted_match: /[,;\t\r\n]/, record_delimiter: 'windows' },
  )
}

function textOf(cell: WrittenCell): string {
  if (cell === null) return ''
  if (typeof cell === 'bigint') return String(cell)
  return typeof cell === 'string' ? escapeFormulas(cell) : cell.number
}

/**
 * Puts an apostrophe before text that a spreadsheet could read as a formula, and before text that would otherwise lose its own
 * apostrophe in `unescaped`. A spreadsheet may split lines by its locale's delimiter instead of the file's, and then quotes do not
 * keep a cell together. So a cell can begin after every comma, semicolon, tab and line break.
 * Source: OWASP, "CSV Injection"
 */
function escapeFormulas(cell: string): string {
  return sign.test(cell) ? cell.replace(formulaStart, "'") : cell
}

/** Removes the apostrophes that `escapeFormulas` added. */
export function unescaped(cell: string): string {
  return cell.includes("'") ? cell.replace(escapedStart, '') : cell
}

// Four characters start a formula, also in full width; a tab or carriage return can hide one.
const sign = /[=+\-@\t\r＝＋－＠]/
const formulaStart = /(?<=^|[,;\t\r\n])(?='*"*[=+\-@\t\r＝＋－＠])/g
const escapedStart = /(?<=^|[,;\t\r\n])'(?='*"*[=+\-@\t\r＝＋－＠])/g
