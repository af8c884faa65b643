import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8')
const rows = [...read('docs/reference/glossary.md').matchAll(/^\| (.+) \|$/gm)]
  .map(([, row = '']) => row.split(' | '))
  .filter(([term = '']) => !/^(Term|-+)/.test(term))
const columns = columnsByTable(read('src/database/tables.ts'))

test('every term has a one-sentence meaning, a wire name and a table', () => {
  expect(rows.length).toBeGreaterThan(70)
  for (const row of rows) {
    expect(row, row[0]).toHaveLength(4)
    expect(row[1], row[0]).toMatch(/^[A-Z`].+\.$/)
  }
})

test('every table and column that the glossary names exists', () => {
  // The rows about money name columns that many tables have.
  const named = rows.flatMap(([, , , tables = '']) =>
    [...tables.matchAll(/`([a-z_.]+)`/g)].map(match => match[1] ?? ''),
  )
  const missing = named.filter(name => {
    const [table = '', column] = name.split('.')
    if (!columns.has(table)) return ![...columns.values()].some(each => each.includes(name))
    return column !== undefined && !columns.get(table)?.includes(column)
  })
  expect(missing).toEqual([])
})

test('every table of the database is in the glossary', () => {
  const named = rows.map(([, , , tables = '']) => tables).join(' ')
  const forgotten = [...columns.keys()].filter(table => !new RegExp(`\`${table}[\`.]`).test(named))
  expect(forgotten).toEqual([])
})

/** The columns of each table, in the database's spelling. */
function columnsByTable(tables: string): Map<string, string[]> {
  const found = [...tables.matchAll(/^ {2}(\w+): \{\n((?: {4}.+\n)+)/gm)]
  return new Map(
    found.map(([, table = '', body = '']) => [
      inSnakeCase(table),
      [...body.matchAll(/^ {4}(\w+):/gm)].map(match => inSnakeCase(match[1] ?? '')),
    ]),
  )
}

function inSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}
