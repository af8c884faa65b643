import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const page = readFileSync('docs/operations/threat-model.md', 'utf8')
const threats = page.matchAll(
  /^\| (?<threat>[^|]+) \| (?<kind>[STRIDE]) \| (?<fences>[^|]+) \| `(?<file>[^`]+)`: (?<title>[^|]+) \|$/gm,
)
const rows = Array.from(threats, ({ groups = {} }) => groups)

test('every threat has two fences and a test that exists', () => {
  expect(rows.length).toBe(page.match(/^\| [^|]+ \| [STRIDE] \|/gm)?.length)
  expect(rows.length).toBeGreaterThanOrEqual(30)
  for (const { threat, fences = '', file = '', title = '' } of rows) {
    expect(fences.split('; ').length, threat).toBeGreaterThanOrEqual(2)
    const source = existsSync(file) ? readFileSync(file, 'utf8') : ''
    expect(source, `${threat}: ${file}`).toMatch(
      new RegExp(`(?<!(?:skip|todo)\\()(['"\`])${RegExp.escape(title)}(, in \\$\\{runs\\} runs)?\\1`),
    )
  }
})

test('every kind of threat is considered', () => {
  expect(new Set(rows.map(({ kind }) => kind))).toEqual(new Set('STRIDE'))
})
