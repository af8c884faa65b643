import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { listMigrations, migrationsFolder, parseMigration, type Step } from '../src/database/migration-file.ts'

// Checks migrations with squawk, step by step, as `midmonth migrate` runs them. Arguments: folders; by default ours and the drill's.

const drills = fileURLToPath(new URL('../test/drills/upgrade/migrations/', import.meta.url))
const folders = process.argv.length > 2 ? process.argv.slice(2) : [migrationsFolder, drills]

const excluded = [
  // `midmonth migrate` sets both for every step.
  'require-lock-timeout',
  'require-statement-timeout',
  // A step is one transaction, and is recorded, so it is not run twice.
  'prefer-robust-stmts',
  // Counts and numbers of a state fit into 32 bits, and the driver returns 64 bits as another type.
  'prefer-bigint-over-int',
  'prefer-bigint-over-smallint',
]
/** What breaks older programs is for the steps that contract the schema. */
const excludedOf: Record<Step['phase'], string[]> = { expand: [], contract: ['ban-drop-column', 'ban-drop-table'] }
// The first migration makes the schema in an empty database.
const exempt = ['0001_schema']

let checked = 0
for (const folder of folders) {
  for (const name of listMigrations(folder).filter(each => !exempt.includes(each))) {
    const text = readFileSync(path.join(folder, `${name}.sql`), 'utf8')
    for (const step of parseMigration(name, text).steps) {
      checked += 1
      // Lines keep their numbers.
      const input = text.slice(0, text.indexOf(step.sql)).replace(/[^\n]/g, '') + step.sql
      const rules = [...excluded, ...excludedOf[step.phase]].flatMap(rule => ['--exclude', rule])
      const inTransaction = step.way.kind === 'concurrently' ? [] : ['--assume-in-transaction']
      const file = path.relative(process.cwd(), path.join(folder, `${name}.sql`))
      const { status, stdout, stderr, error } = spawnSync(
        'squawk',
        ['--pg-version=15.0', `--stdin-filepath=${file}`, ...inTransaction, ...rules],
        { input, encoding: 'utf8' },
      )
      if (error !== undefined) throw error
      if (status === 0) continue
      console.error(stdout + stderr)
      process.exitCode = 1
    }
  }
}
console.log(`${checked} steps of migrations checked with squawk`)
