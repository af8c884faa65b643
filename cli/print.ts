type Row = Record<string, string | number | boolean | null>

/** Prints a thing, or a list of things, as a table that lines up, or as JSON for a script. */
export function print(rows: Row | Row[], { json }: { json?: boolean }): void {
  console.log(json ? JSON.stringify(rows, null, 2) : table([rows].flat()))
}

/** A table that lines up. */
export function table(rows: Row[]): string {
  const [first] = rows
  if (first === undefined) return '(none)'
  const names = Object.keys(first)
  const lines = [names, ...rows.map(row => names.map(name => String(row[name] ?? '–')))]
  const widths = names.map((_, column) => Math.max(...lines.map(line => line[column]?.length ?? 0)))
  return lines
    .map(line =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
