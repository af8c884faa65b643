import { readFileSync } from 'node:fs'
import { tablePlaces } from '../../src/database/table-places.ts'
import { snakeCase } from '../../src/kernel/text.ts'
import type { Tables } from './one-partner.ts'

/** All tables, with their columns from the generated types. */
export function readTables(): Tables {
  const generated = readFileSync(new URL('../../src/database/tables.ts', import.meta.url), 'utf8')
  const tables = Object.entries(tablePlaces).map(([table, place]) => {
    const [, body = ''] = new RegExp(`^ {2}${table}: \\{\n(.*?)^ {2}\\}`, 'ms').exec(generated) ?? []
    const columns = [...body.matchAll(/^ {4}(\w+):/gm)].map(([, column = '']) => snakeCase(column))
    return [snakeCase(table), { columns, isDistributed: place === 'distributed' }] as const
  })
  return Object.fromEntries(tables)
}
