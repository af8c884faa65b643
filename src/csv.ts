import { stringify } from 'csv-stringify/sync'

/**
 * Rows as lines of a CSV file for people and their spreadsheets, with `escapeFormulas` applied to every cell.
 */
export function csvLines(rows: string[][], { delimiter = ',' }: { delimiter?: string } = {}): string {
  return stringify(
    rows.map(cells => cells.map(escapeFormulas)),
    // A reader may split at other places than the delimiter, too. Source of the line end: RFC 4180, section 2.
    { delimiter, quoted_match: /[,;\t\r\n]/, record_delimiter: 'windows' },
  )
}

/**
 * Puts an apostrophe before whatever a spreadsheet could take for a formula, and before what would lose its own apostrophe to
 * `unescaped`. A spreadsheet splits lines as its locale says, whatever the file's delimiter is, and then quotes within a line
 * do not hold a cell together: so a cell can begin behind every comma, semicolon, tab and line break.
 * Source: OWASP, "CSV Injection"
 */
export function escapeFormulas(cell: string): string {
  return sign.test(cell) ? cell.replace(formulaStart, "'") : cell
}

/** Takes away the apostrophes that `escapeFormulas` has put in. */
export function unescaped(cell: string): string {
  return cell.includes("'") ? cell.replace(escapedStart, '') : cell
}

// Four signs begin a formula, also in full width; a tab or carriage return hides one.
const sign = /[=+\-@\t\r＝＋－＠]/
const formulaStart = /(?<=^|[,;\t\r\n])(?='*"*[=+\-@\t\r＝＋－＠])/g
const escapedStart = /(?<=^|[,;\t\r\n])'(?='*"*[=+\-@\t\r＝＋－＠])/g

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
