import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { phrases } from './phrases.ts'

/** The files and folders whose prose is checked. */
const checked = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'docs',
  'migrations',
  'src',
  'cli',
  'packages',
  'scripts',
  'bench',
  'test',
  'openapi.json',
]

// Between two words of a comment there may be a line break and the start of the next line.
const gap = /\s+(?:(?:\*|\/\/|--|>)\s+)?/g

const root = fileURLToPath(new URL('../..', import.meta.url))
const files = checked
  .flatMap(filesIn)
  .filter(file => /\.(md|ts|mjs|js|css|sql|json)$/.test(file) && !file.includes('/dist/'))
  // Not the list of phrases and this test.
  .filter(file => !file.startsWith('test/style/'))

test('the check sees every page', () => {
  expect(files).toContain('README.md')
  expect(files).toContain('docs/reference/glossary.md')
  expect(files.length).toBeGreaterThan(30)
})

test('the prose has none of the phrases that STYLE.md rules out', () => {
  const found = files.flatMap(file => check(file, readFileSync(path.join(root, file), 'utf8')))
  expect(found).toEqual([])
})

test.each([
  ['x.md', 'Nobody is\nwaiting.', ['x.md:1: Nobody']],
  ['x.md', '\nIt is not there any\nmore.', ['x.md:2: any more']],
  ['x.ts', '/**\n * Not any\n * more.\n */', ['x.ts:2: any more']],
  ['x.sql', '-- Somebody\n', ['x.sql:1: Somebody']],
  ['x.md', 'As the user `nobody`.\n\n```sh\nnobody\n```\n', []],
  ['x.ts', "const user = 'nobody'", []],
  ['x.ts', "fail('Nobody waits')", ['x.ts:1: Nobody']],
  ['x.md', 'Look at all rows, and any more rows.', []],
  ['x.md', 'A dot is no file. There is no dot.', ['x.md:1: is no']],
  ['x.md', 'Amend the harvest; the rows are whole.', []],
])('in %s, %j has %j', (file, text, expected) => {
  expect(check(file, text).map(line => line.split(' (')[0])).toEqual(expected)
})

function check(file: string, text: string): string[] {
  const prose = file.endsWith('.md') ? withoutCode(text) : text
  return phrases.flatMap(({ find, instead }) =>
    [...prose.matchAll(patternOf(find))]
      .filter(({ 0: phrase, index }) => !isQuoted(prose, index, phrase.length))
      .map(({ 0: phrase, index }) => {
        const line = prose.slice(0, index).split('\n').length
        return `${file}:${line}: ${phrase.replace(gap, ' ')} (write ${instead})`
      }),
  )
}

function patternOf(find: string): RegExp {
  return new RegExp(`\\b(?:${find.replaceAll(' ', gap.source)})(?!\\w)`, 'gim')
}

/** A quoted word is a name, such as that of a Unix user. */
function isQuoted(text: string, index: number, length: number): boolean {
  const before = text.charAt(index - 1)
  return /['"]/.test(before) && before === text.charAt(index + length)
}

/** Drops code from Markdown: input and output, whose words are checked at their source. Lines keep their numbers. */
function withoutCode(text: string): string {
  return text.replace(/^ *```[\s\S]*?^ *```/gm, code => code.replace(/[^\n]/g, '')).replace(/`[^`\n]*`/g, '``')
}

function filesIn(name: string): string[] {
  if (statSync(path.join(root, name)).isFile()) return [name]
  return readdirSync(path.join(root, name), { recursive: true, encoding: 'utf8' }).map(file => `${name}/${file}`)
}
