import { execFile } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { createContext, runInContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { installPackage, type Project } from './project.fixture.ts'

const run = promisify(execFile)
const source = path.join(import.meta.dirname, '..')
const gzipBytesMax = 15_000

let project: Project
beforeAll(async () => {
  project = await installPackage()
})
afterAll(() => project.remove())

async function bundle(): Promise<string> {
  const build = await rolldown({ input: path.join(project.installed, 'dist/esm/index.js'), platform: 'neutral' })
  const { output } = await build.generate({ format: 'iife', name: 'sdk', minify: true })
  await build.close()
  expect(output).toHaveLength(1)
  return output[0].code
}

test('the package has no dependencies, and its complete bundle is at most 15 kB gzip', async () => {
  const manifest = JSON.parse(await readFile(path.join(project.installed, 'package.json'), 'utf8'))
  for (const kind of ['dependencies', 'peerDependencies', 'optionalDependencies'])
    expect(manifest[kind] ?? {}, kind).toEqual({})
  const bytes = gzipSync(await bundle(), { level: 9 }).length
  expect(bytes).toBeGreaterThan(3_000)
  expect(bytes).toBeLessThanOrEqual(gzipBytesMax)
})

test('publint finds nothing to improve', async () => {
  const { messages, pkg } = await publint({ pkgDir: project.installed, pack: false, strict: true })
  expect(messages.map(message => formatMessage(message, pkg))).toEqual([])
})

test('TypeScript below 5 gets types that lack the imported names, so that it fails instead of typing everything as any', async () => {
  const { exports: main, typesVersions } = JSON.parse(
    await readFile(path.join(project.installed, 'package.json'), 'utf8'),
  )
  const required = './dist/typescript-5-required.d.ts'
  // The first matching condition applies.
  expect(Object.entries(main['.'])[0]).toEqual(['types@<5.0', required])
  expect(typesVersions).toEqual({ '<5.0': { '*': [required] } })
  const types = await readFile(path.join(project.installed, required), 'utf8')
  expect(types.match(/export/g)).toHaveLength(1)
  expect(types).toContain('THE_TYPES_NEED_TYPESCRIPT_5_OR_LATER')
})

const use = `const midmonth = new Midmonth({ apiKey: 'mm_test_1', baseUrl: 'http://127.0.0.1:1' })
midmonth.webhooks
  .testHeaders('{}', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')
  .then(headers => console.log(Object.keys(headers).length, gbp('12.34').amount))`

test.each([
  ['import', 'use.mjs', `import { gbp, Midmonth } from '@midmonth/sdk'\n${use}`],
  ['require', 'use.cjs', `const { gbp, Midmonth } = require('@midmonth/sdk')\n${use}`],
])('a plain Node process can %s it', async (_, name, code) => {
  await writeFile(path.join(project.folder, name), code)
  const { stdout } = await run(process.execPath, [path.join(project.folder, name)])
  expect(stdout).toBe('4 1234\n')
})

test('it runs with the globals of every JavaScript runtime and without Node', async () => {
  const { fetch, Headers, Response, URL, URLSearchParams, AbortController, Blob, ReadableStream } = globalThis
  const { TextEncoder, TextDecoder, crypto, atob, btoa, setTimeout, clearTimeout, performance } = globalThis
  const sent: string[] = []
  const context = createContext({
    ...{ Headers, Response, URL, URLSearchParams, AbortController, Blob, ReadableStream },
    ...{ TextEncoder, TextDecoder, crypto, atob, btoa, setTimeout, clearTimeout, performance },
    fetch: async (...[url]: Parameters<typeof fetch>) => {
      sent.push(String(url))
      return new Response('{"memberId":"mem_1"}')
    },
  })
  const member = await runInContext(
    `${await bundle()}
    ;(async () => {
      const midmonth = new sdk.Midmonth({ apiKey: 'mm_test_1', baseUrl: 'http://127.0.0.1:1' })
      const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
      await midmonth.webhooks.unwrap('{}', await midmonth.webhooks.testHeaders('{}', secret), secret)
      await midmonth.members.offboard('mem_1')
      return (await midmonth.members.get('mem_1')).memberId + typeof process + typeof require + typeof Buffer
    })()`,
    context,
  )
  expect(member).toBe('mem_1undefinedundefinedundefined')
  expect(sent).toEqual(['http://127.0.0.1:1/v1/members/mem_1', 'http://127.0.0.1:1/v1/members/mem_1'])
})

test('its sources import nothing but each other', async () => {
  const files = (await readdir(path.join(source, 'src'), { recursive: true })).filter(name => name.endsWith('.ts'))
  const imported = await Promise.all(
    files.map(async name => {
      const code = await readFile(path.join(source, 'src', name), 'utf8')
      return [...code.matchAll(/from '([^']+)'/g)].map(match => match[1] ?? '')
    }),
  )
  expect(imported.flat().length).toBeGreaterThan(20)
  expect(imported.flat().filter(specifier => !/^\.\.?\/[\w./-]+\.ts$/.test(specifier))).toEqual([])
})

const typed = `import { type Member, type MemberId, MemberNotFoundError, Midmonth } from '@midmonth/sdk'
const midmonth = new Midmonth({ apiKey: 'mm_test_1', baseUrl: 'http://127.0.0.1:1', log: entry => entry.path })
export async function emails(): Promise<string[]> {
  const memberId: MemberId = 'mem_1'
  const found: Member[] = [await midmonth.members.get(memberId)]
  for await (const member of midmonth.members.list({ statuses: ['active'] })) found.push(member)
  return found.map(({ email }) => email)
}
export const isUnknown = (error: unknown) => error instanceof MemberNotFoundError && error.issues[0]?.memberId
// @ts-expect-error: the types exist and are not any
midmonth.members.get(17)
`

// Checks the same as @arethetypeswrong, but with our own compiler: the package would add another, of 20 MB.
test.each([
  ['import and require in Node', ['esm.mts', 'cjs.cts'], ['--module', 'nodenext', '--types', 'node']],
  ['a bundler, with the types of a browser', ['bundler.ts'], ['--module', 'preserve', '--lib', 'es2022,dom']],
])('its types are right for %s', async (_, names, options) => {
  const files = names.map(name => path.join(project.folder, name))
  for (const file of files) await writeFile(file, typed)
  await project.typecheck(files, options)
})
