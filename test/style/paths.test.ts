import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const filesIn = (folder: string, extension: RegExp) =>
  readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .map(name => `${folder}/${name}`)
    .filter(name => extension.test(name))
const pages = ['README.md', 'CONTRIBUTING.md', ...filesIn('docs', /\.md$/)]
const code = [
  ...['src', 'cli', 'scripts', 'test', 'bench'].flatMap(folder => filesIn(folder, /\.(ts|mjs)$/)),
  'openapi.json',
]

test('every file and folder that the docs name in code style exists', () => {
  expect(missing(pages, /`((?:src|cli|test|bench|scripts|migrations|docs)\/[\w./-]*)`/g)).toEqual([])
})

test('every page that the code, its help and openapi.json refer to exists', () => {
  expect(missing(code, /\b(docs\/[\w/-]+\.md)\b/g)).toEqual([])
})

test('the index links every page', () => {
  const index = readFileSync(path.join(root, 'docs/README.md'), 'utf8')
  const unlinked = filesIn('docs', /\.md$/).filter(page => page !== 'docs/README.md' && !index.includes(page.slice(5)))
  expect(unlinked).toEqual([])
})

test('the architecture page has every folder of src', () => {
  const page = readFileSync(path.join(root, 'docs/internals/architecture.md'), 'utf8')
  const folders = readdirSync(path.join(root, 'src'), { withFileTypes: true }).filter(entry => entry.isDirectory())
  expect(folders.map(({ name }) => name).filter(name => !page.includes(`${name}/\``))).toEqual([])
})

function missing(files: string[], pattern: RegExp): string[] {
  return files.flatMap(file =>
    [...readFileSync(path.join(root, file), 'utf8').matchAll(pattern)]
      .map(([, name = '']) => name)
      .filter(name => !existsSync(path.join(root, name)))
      .map(name => `${file}: ${name}`),
  )
}
