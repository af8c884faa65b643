import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeSite } from '../../scripts/site.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'midmonth-site-'))
  await writeSite(folder)
})
afterAll(() => rm(folder, { recursive: true }))

const pages = () =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.html'))
    .map(file => ({ file, body: readFileSync(path.join(folder, file), 'utf8') }))

test('npm run docs writes a site without broken links', () => {
  expect(pages().length).toBeGreaterThan(100)
  for (const { file, body } of pages()) {
    const links = [...body.matchAll(/ (?:href|src|data-engine|data-entries)="(\/[^"#]*)/g)].map(([, link = '']) => link)
    for (const link of new Set(links)) {
      const target = path.join(folder, path.extname(link) === '' ? `${link}/index.html` : link)
      expect(existsSync(target), `${link} in ${file}`).toBe(true)
    }
  }
})

test('the root of the site leads to the documentation', () => {
  expect(readFileSync(path.join(folder, 'index.html'), 'utf8')).toContain('content="0; url=/docs/"')
})

test('the site does not ask for a key or send anything, and its pages load nothing from elsewhere', () => {
  for (const { file, body } of pages()) {
    expect(body, file).not.toMatch(/class="key"|type="submit"/)
    expect(body, file).not.toMatch(/<(script|link|img|iframe)[^>]*(src|href)="(https?:)?\/\//)
  }
})

test('the site has the files for programs: openapi.json, llms.txt and llms-full.txt', () => {
  expect(readFileSync(path.join(folder, 'openapi.json'))).toEqual(
    readFileSync(new URL('../../openapi.json', import.meta.url)),
  )
  for (const file of ['llms.txt', 'llms-full.txt']) expect(existsSync(path.join(folder, file)), file).toBe(true)
})
