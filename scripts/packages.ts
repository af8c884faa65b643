import assert from 'node:assert'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { crc32 } from 'node:zlib'
import { headerOf } from '../src/backups/tar.ts'
import { packagesFolder } from '../src/site/packages/routes.ts'

// Builds the packages that the service serves at /sdk. `npm install` runs it.

type Files = Record<string, Buffer>
type Manifest = { name: string; version: string; [field: string]: unknown }

const checkout = new URL('..', import.meta.url)
const read = (file: string) => readFileSync(new URL(file, checkout))
const manifestOf = (folder: string): Manifest => JSON.parse(String(read(`${folder}/package.json`)))
const license = read('LICENSE')

/** Writes each package as npm packs it, named by its name and version. @returns the file names */
export async function writePackages(folder: string): Promise<string[]> {
  const built = [await sdk(), await withdrawComponent(), await commandLine()]
  await mkdir(folder, { recursive: true })
  const names = built.map(
    ({ manifest: { name, version } }) => `${name.replace(/^@/, '').replace('/', '-')}-${version}.tgz`,
  )
  for (const [index, { manifest, files }] of built.entries()) {
    const text = `${JSON.stringify(manifest, null, 2)}\n`
    const file = path.join(folder, names[index] ?? '')
    // The service may be reading the folder.
    await writeFile(`${file}.new`, packed({ 'package.json': Buffer.from(text), LICENSE: license, ...files }))
    await rename(`${file}.new`, file)
  }
  for (const name of await readdir(folder)) if (!names.includes(name)) await rm(path.join(folder, name))
  return names
}

/** What is published of a manifest: no scripts, so nothing runs when it is installed. */
function published({ scripts: _, private: __, devDependencies: ___, ...manifest }: Manifest): Manifest {
  return manifest
}

async function sdk() {
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-packages-'))
  try {
    await promisify(execFile)(process.execPath, [fileURLToPath(new URL('packages/sdk/build.ts', checkout)), folder])
    const files: Files = { 'README.md': read('packages/sdk/README.md') }
    for (const name of await readdir(folder, { recursive: true })) {
      if (path.extname(name) === '') continue
      files[`dist/${name.replaceAll('\\', '/')}`] = await readFile(path.join(folder, name))
    }
    return { manifest: published(manifestOf('packages/sdk')), files }
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function withdrawComponent() {
  const manifest = published(manifestOf('packages/withdraw-component'))
  const file = 'midmonth-withdraw.js'
  const files = {
    [file]: read(`src/site/member-page/${file}`),
    'README.md': read('packages/withdraw-component/README.md'),
  }
  return { manifest: { ...manifest, exports: `./${file}` }, files }
}

/** The commands for partners, bundled with their dependencies. */
async function commandLine() {
  const { rolldown } = await import('rolldown')
  const bundle = await rolldown({
    input: { midmonth: fileURLToPath(new URL('cli/client/midmonth.ts', checkout)) },
    platform: 'node',
    tsconfig: false,
  })
  try {
    const { output } = await bundle.generate({ format: 'esm', minify: true, chunkFileNames: '[name].js' })
    const chunks = output.flatMap(each => (each.type === 'chunk' ? [each] : assert.fail(`Unexpected ${each.fileName}`)))
    const { version } = manifestOf('packages/sdk')
    const manifest: Manifest = {
      name: '@midmonth/cli',
      version,
      description: 'The Midmonth command line for partners',
      license: 'Apache-2.0',
      type: 'module',
      bin: { midmonth: 'dist/midmonth.js' },
      engines: { node: '>=22' },
    }
    const files: Files = {
      'openapi.json': read('openapi.json'),
      'THIRD-PARTY-LICENSES': Buffer.from(licensesOf(chunks.flatMap(({ moduleIds }) => moduleIds))),
    }
    for (const { fileName, code } of chunks) files[`dist/${fileName}`] = Buffer.from(code)
    return { manifest, files }
  } finally {
    await bundle.close()
  }
}

/** The licenses of the dependencies that the modules belong to. */
function licensesOf(modules: string[]): string {
  const folders = new Set(modules.flatMap(id => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []))
  return [...folders]
    .toSorted()
    .map(folder => {
      const { name, license, author } = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'))
      const file = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'license']
        .map(each => path.join(folder, each))
        .find(existsSync)
      const text = file === undefined ? `By ${author?.name ?? author}.` : readFileSync(file, 'utf8').trim()
      return `${name} (${license})\n\n${text}\n`
    })
    .join(`\n${'-'.repeat(80)}\n\n`)
}

/**
 * A gzipped tar of the files, with nothing in it that depends on the machine or the time. It is stored, not deflated: the
 * output of zlib differs between its versions and processors, and the bytes of a version must never change.
 */
function packed(files: Files): Buffer {
  const entries = Object.entries(files).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const blocks = entries.flatMap(([name, content]) => [
    headerOf(`package/${name}`, {
      type: '0',
      bytes: content.length,
      mode: name.startsWith('dist/midmonth.js') ? 0o755 : 0o644,
      // The time that npm gives to every file.
      mtimeSeconds: Date.UTC(1985, 9, 26, 8, 15) / 1_000,
    }),
    content,
    Buffer.alloc(-content.length & 511),
  ])
  return gzipStored(Buffer.concat([...blocks, Buffer.alloc(1024)]))
}

const storedBytesMax = 65_535

function gzipStored(content: Buffer): Buffer {
  const parts: Buffer[] = [Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255])]
  for (let at = 0; at < content.length; at += storedBytesMax) {
    const block = content.subarray(at, at + storedBytesMax)
    const head = Buffer.alloc(5)
    head.writeUInt8(at + storedBytesMax >= content.length ? 1 : 0)
    head.writeUInt16LE(block.length, 1)
    head.writeUInt16LE(~block.length & 0xffff, 3)
    parts.push(head, block)
  }
  const tail = Buffer.alloc(8)
  tail.writeUInt32LE(crc32(content))
  tail.writeUInt32LE(content.length, 4)
  return Buffer.concat([...parts, tail])
}

if (process.argv[1] === import.meta.filename) {
  // An installation without development dependencies has no compiler. It serves everything but the packages and the console.
  if (existsSync(new URL('node_modules/rolldown', checkout))) await writePackages(packagesFolder)
  else
    process.stderr.write('The packages at /sdk are not built: install with development dependencies to build them.\n')
}
