type Row = Record<string, string | number | boolean | null>

/** Prints an answer for a person, or with `--json` the same and nothing else for a script. */
export function answer(
  { json }: { json?: boolean | undefined },
  { value, text }: { value: unknown; text: () => string },
): void {
  console.log(json ? JSON.stringify(value, exact, 2) : text())
}

declare global {
  interface JSON {
    // ECMAScript 2026; TypeScript does not know it yet.
    rawJSON(text: string): object
  }
}

// JSON has no largest integer; only a double has.
function exact(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? JSON.rawJSON(String(value)) : value
}

/** Prints a thing, or a list of things, as a table that lines up, or as JSON for a script. */
export function print(rows: Row | Row[], options: { json?: boolean }): void {
  answer(options, { value: rows, text: () => table([rows].flat()) })
}

/** A table that lines up. */
export function table(rows: Row[]): string {
  const [first] = rows
  if (first === undefined) return '(none)'
  const names = Object.keys(first)
  return columns([names, ...rows.map(row => names.map(name => cell(row[name])))])
}

/** One thing, a line for each of its fields. */
export function sheet(fields: Row): string {
  return columns(Object.entries(fields).map(([name, value]) => [name, cell(value)]))
}

function columns(lines: string[][]): string {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map(line => line[column]?.length ?? 0)))
  return lines
    .map(line =>
      line
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function cell(value: Row[string] | undefined): string {
  return String(value ?? '–')
}
