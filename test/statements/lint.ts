import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { exceptions } from './exceptions.ts'
import { withoutPartner } from './one-partner.ts'
import type { Recorded } from './record.ts'
import { readTables } from './tables.ts'

// Checks the statements that the tests recorded: npm run lint:statements, after
//   MIDMONTH_TEST_STATEMENTS=FOLDER npm test
// A distributed PostgreSQL keeps a partner's rows on one node. A statement reaches that node, and no other, only if each table in it is
// restricted to the partner.

const folder = process.env.MIDMONTH_TEST_STATEMENTS
assert(
  folder !== undefined,
  'MIDMONTH_TEST_STATEMENTS is not set: it names the folder in which `npm test` recorded statements',
)
const recorded = readdirSync(folder)
  .flatMap(file => readFileSync(path.join(folder, file), 'utf8').split('\n'))
  .filter(line => line !== '')
  .map((line): Recorded => JSON.parse(line))
const tables = readTables()
const entries = Object.values(exceptions).flat()
const used = new Set<string>()
const faults = new Map<string, string>()
for (const { text, place, partners } of recorded) {
  const found = await withoutPartner(text, tables, partners)
  if (found.length === 0) continue
  const entry = entries.find(each => each === place || (each.endsWith('/') && place.startsWith(each)))
  if (entry !== undefined) used.add(entry)
  else faults.set(text, `${place}: ${found.join(', ')}\n${text.trim()}`)
}
const needless = entries.filter(entry => !used.has(entry))
for (const fault of [...faults.values()].sort()) console.error(`\n${fault}`)
for (const entry of needless) console.error(`\nnot needed in test/statements/exceptions.ts: ${entry}`)
const texts = new Set(recorded.map(({ text }) => text)).size
console.log(`${texts} statements, ${faults.size} without their partner, ${used.size} exceptions`)
if (faults.size + needless.length > 0) process.exitCode = 1
assert(texts > 1_000, 'These are not the statements of all tests, so they prove little')
