import { stringify } from 'csv-stringify/sync'

/**
 * Rows as lines of a CSV file for people and their spreadsheets: a cell that one would take for a formula begins with an
 * apostrophe, and so does one that would lose its own apostrophe to `unescaped`.
 */
export function csvLines(rows: string[][], { delimiter = ',' }: { delimiter?: string } = {}): string {
  return stringify(
    rows.map(cells => (cells.some(isEscaped) ? cells.map(cell => (isEscaped(cell) ? `'${cell}` : cell)) : cells)),
    // Source of the line end: RFC 4180, section 2.
    { delimiter, escape_formulas: true, record_delimiter: 'windows' },
  )
}

/** Takes away the apostrophe that `csvLines` has put before a cell. */
export function unescaped(cell: string): string {
  return isEscaped(cell) ? cell.slice(1) : cell
}

function isEscaped(cell: string): boolean {
  return cell.charCodeAt(0) === apostrophe && escaped.test(cell)
}

const apostrophe = 0x27
// What begins a formula, for csv-stringify: four signs, the same in full width, and two blanks that hide one.
const escaped = /^'+[=+\-@\t\r＝＋－＠]/

/** What stands between the cells of a file: comma, semicolon or tab, whichever its header has most of outside of quotes. */
export function delimiterOf(text: string): string {
  const counts = { ',': 0, ';': 0, '\t': 0 }
  let isQuoted = false
  for (const character of text) {
    if (character === '"') isQuoted = !isQuoted
    else if (isQuoted) continue
    else if (character === '\n' || character === '\r') break
    else if (character in counts) counts[character as keyof typeof counts]++
  }
  return counts[';'] > counts[','] || counts['\t'] > counts[','] ? (counts[';'] >= counts['\t'] ? ';' : '\t') : ','
}
