import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { writePackages } from '../../scripts/packages.ts'
import { packagesFolder } from '../../src/site/packages/routes.ts'
import { newDatabase, type Served, serve, tidyUp } from './program.ts'

vi.setConfig({ testTimeout: 180_000 })

const run = promisify(execFile)
let service: Served
let folder: string
let names: string[]
beforeAll(async () => {
  names = await writePackages(packagesFolder)
  service = await serve(await newDatabase({ hasDemo: true }))
  folder = await mkdtemp(path.join(tmpdir(), 'midmonth-packages-'))
}, 60_000)
afterAll(async () => {
  await rm(folder, { recursive: true })
  await tidyUp()
})

const addressOf = (name: string) => `${service.address}/sdk/${name}`

test('the service offers the SDK, the component and the command line in its own version, cacheable for ever', async () => {
  const { info } = (await (await fetch(`${service.address}/openapi.json`)).json()) as { info: { version: string } }
  expect(names).toEqual(['sdk', 'withdraw-component', 'cli'].map(name => `midmonth-${name}-${info.version}.tgz`))
  for (const name of names) {
    const { status, headers } = await fetch(addressOf(name))
    expect([status, headers.get('content-type')]).toEqual([200, 'application/gzip'])
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  }
})

test('the bytes of a package are the same however often it is built', async () => {
  const again = await mkdtemp(path.join(tmpdir(), 'midmonth-packages-'))
  await writePackages(again)
  for (const name of names)
    expect(
      (await readFile(path.join(again, name))).equals(Buffer.from(await (await fetch(addressOf(name))).arrayBuffer())),
    ).toBe(true)
  await rm(again, { recursive: true })
})

test('npm pack writes the same bytes of the SDK in another folder at another time', async () => {
  const hashes: string[] = []
  for (const [name, at] of [
    ['a', new Date('2026-01-01')],
    ['a-longer/path', new Date('2027-06-01')],
  ] as const) {
    const checkout = path.join(folder, name)
    const source = path.join(checkout, 'packages/sdk')
    await cp('packages/sdk', source, { recursive: true, filter: file => !file.endsWith('/dist') })
    await symlink(path.resolve('node_modules'), path.join(checkout, 'node_modules'))
    for (const file of await readdir(source, { recursive: true })) await utimes(path.join(source, file), at, at)
    const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', checkout], { cwd: source })
    const packed = await readFile(path.join(checkout, stdout.trim().split('\n').at(-1) ?? ''))
    hashes.push(createHash('sha256').update(packed).digest('hex'))
  }
  expect(hashes[0]).toBe(hashes[1])
})

test.each(['midmonth-sdk-0.0.0.tgz', '../package.json', '%2e%2e/package.json', 'midmonth-sdk-0.1.0.tgz/', ''])(
  '/sdk/%s is not found, in the contract’s shape',
  async name => {
    const response = await fetch(addressOf(name))
    expect([response.status, await response.json()]).toMatchObject([404, { issues: [{ code: 'NotFound' }] }])
  },
)

test('npm installs only the packages from the service and runs no scripts', async () => {
  await writeFile(path.join(folder, 'package.json'), '{"type":"module"}')
  // The registry is unreachable, because the packages have no dependencies.
  const options = ['--registry', 'http://127.0.0.1:9', '--no-audit', '--no-fund', '--no-update-notifier']
  const cache = ['--cache', path.join(folder, 'cache')]
  await run('npm', ['install', ...options, ...cache, ...names.map(addressOf)], { cwd: folder })
  const { packages } = JSON.parse(await readFile(path.join(folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { resolved?: string; integrity?: string; hasInstallScript?: boolean }>
  }
  const installed = Object.entries(packages).filter(([name]) => name !== '')
  expect(installed.map(([name]) => name.replace('node_modules/@midmonth/', ''))).toEqual([
    'cli',
    'sdk',
    'withdraw-component',
  ])
  for (const [, { resolved, integrity, hasInstallScript }] of installed) {
    expect(resolved).toMatch(new RegExp(`^${service.address}/sdk/`))
    expect(integrity).toMatch(/^sha512-/)
    expect(hasInstallScript).toBeUndefined()
  }
  for (const name of names)
    expect(gunzipSync(await readFile(path.join(packagesFolder, name))).toString()).not.toContain('"scripts"')
})

test('the installed SDK and the installed command line call the service', async () => {
  const env = { PATH: process.env.PATH, MIDMONTH_URL: service.address, MIDMONTH_API_KEY: service.key, HOME: folder }
  const code = `import { Midmonth } from '@midmonth/sdk'
const { MIDMONTH_URL: baseUrl, MIDMONTH_API_KEY: apiKey } = process.env
console.log((await new Midmonth({ baseUrl, apiKey }).tiers.list()).length > 0)`
  await writeFile(path.join(folder, 'use.js'), code)
  expect((await run(process.execPath, ['use.js'], { cwd: folder, env })).stdout).toBe('true\n')
  const midmonth = async (...args: string[]) =>
    (await run(path.join(folder, 'node_modules/.bin/midmonth'), args, { cwd: folder, env })).stdout
  expect(await midmonth('members', 'list', '--take', '1')).toMatch(/^member .*\nmem_/)
  expect(await midmonth('api', 'tiers.list')).toContain('Silver')
  const help = await midmonth('--help')
  expect(help).toContain('Commands for partners')
  expect(help).not.toContain('operators')
})
