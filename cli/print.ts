import { terminal, writeLine } from './terminal.ts'

export { countOf } from '../src/kernel/text.ts'

export type SheetRow = Record<string, string | number | boolean | null>

/** Prints a result as text, or with `--json` only as JSON. */
export function printResult(
  { json }: { json?: boolean | undefined },
  { value, text }: { value: unknown; text: () => string },
): void {
  writeLine(json ? jsonOf(value, 2) : text())
}

/** @param indent of nested lines; without it, the JSON is one line */
export function jsonOf(value: unknown, indent?: number): string {
  return JSON.stringify(value, exact, indent)
}

declare global {
  interface JSON {
    // ECMAScript 2026; TypeScript does not have it yet.
    rawJSON(text: string): object
  }
}

// JSON has no largest integer; only a double has.
function exact(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? JSON.rawJSON(String(value)) : value
}

/** Prints one row or a list of rows as a table, or as JSON with `--json`. */
export function print(rows: SheetRow | SheetRow[], options: { json?: boolean }): void {
  printResult(options, { value: rows, text: () => table([rows].flat()) })
}

/**
 * Aligned columns, with the field names as the header. Rows that are wider than the terminal are printed as a line per field instead: a
 * wrapped line is harder to read, and a cut line is not true.
 * @param options.widths of the columns, if more rows follow
 */
export function table(
  rows: SheetRow[],
  { widths = widthsOf(rows), hasHeader = true }: { widths?: number[]; hasHeader?: boolean } = {},
): string {
  const [first] = rows
  if (first === undefined) return '(none)'
  const { stdout } = terminal()
  const width = widths.reduce((sum, each) => sum + each + gap.length, -gap.length)
  // A terminal that does not know its size reports 0.
  if (stdout.isTTY && width > (stdout.columns || Number.POSITIVE_INFINITY))
    return `${hasHeader ? '' : '\n'}${rows.map(sheet).join('\n\n')}`
  const names = Object.keys(first)
  const lines = rows.map(row => names.map(name => cell(row[name])))
  return columns(hasHeader ? [names, ...lines] : lines, widths)
}

/** The widths of the columns of a table. */
export function widthsOf(rows: SheetRow[]): number[] {
  const names = Object.keys(rows[0] ?? {})
  return names.map(name => Math.max(widthOf(name), ...rows.map(row => widthOf(cell(row[name])))))
}

/** One row, printed as a line per field. */
export function sheet(fields: SheetRow): string {
  const lines = Object.entries(fields).map(([name, value]) => [name, cell(value)])
  return columns(lines, [Math.max(...lines.map(([name = '']) => widthOf(name))), 0])
}

const gap = '  '

function columns(lines: string[][], widths: number[]): string {
  return lines
    .map(line =>
      line
        .map((text, column) => text + ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(text))))
        .join(gap)
        .trimEnd(),
    )
    .join('\n')
}

function cell(value: SheetRow[string] | undefined): string {
  return clean(String(value ?? '–'))
}

/** Names come from partners' files: a control character in one could move the cursor, or end the line. */
export function clean(text: string): string {
  return text.replace(/\p{Cc}/gu, '�')
}

/** Breaks a line between words, so that its parts fit a width; a longer word is broken too. Further parts are indented like a list. */
export function wrapped(line: string, width: number): string[] {
  // In a narrow window an indent would leave no room.
  const indent = width < 6 ? '' : '  '
  const lines: string[] = []
  let current = ''
  for (const word of line.split(/(?<= )(?=\S)/)) {
    if (current.trim() !== '' && widthOf(current + word.trimEnd()) > width) {
      lines.push(current.trimEnd())
      current = indent
    }
    current += word
    while (widthOf(current.trimEnd()) > width) {
      const head = headOf(current, width)
      if (head === current) break
      lines.push(head)
      current = indent + current.slice(head.length)
    }
  }
  return [...lines, current.trimEnd()]
}

/** As much of a text as fits a width, but at least its first letter, which may be wider. */
function headOf(text: string, width: number): string {
  let head = ''
  for (const { segment } of segmenter.segment(text)) {
    if (head !== '' && widthOf(head + segment) > width) break
    head += segment
  }
  return head
}

/** Counts the terminal columns that a text takes: letters with accents one, Chinese characters and emoji two. */
function widthOf(text: string): number {
  if (/^[\x20-\x7e–…]*$/.test(text)) return text.length
  const graphemes = Array.from(segmenter.segment(text), ({ segment }) => segment)
  return graphemes.reduce((sum, grapheme) => sum + (wide.test(grapheme) ? 2 : 1), 0)
}

const segmenter = new Intl.Segmenter()
// East Asian Wide and Fullwidth, as far as names have them.
const wide =
  /\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hangul}|\p{Script=Hiragana}|\p{Script=Katakana}|[\u{3000}-\u{303e}\u{ff01}-\u{ff60}\u{ffe0}-\u{ffe6}]/u
