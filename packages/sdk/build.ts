import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

// Compiles the package twice, into `dist` or the given folder: as ES modules, and as CommonJS for `require`.
const folder = import.meta.dirname
const target = path.resolve(process.argv[2] ?? path.join(folder, 'dist'))
const tsc = path.join(path.dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
rmSync(target, { recursive: true, force: true })
for (const [kind, options] of [
  ['esm', ['--module', 'esnext']],
  // The sources are ES modules.
  ['cjs', ['--module', 'commonjs', '--verbatimModuleSyntax', 'false']],
] as const) {
  const dist = path.join(target, kind)
  execFileSync(process.execPath, [tsc, '-p', folder, '--outDir', dist, ...options], { stdio: 'inherit' })
  const type = kind === 'esm' ? 'module' : 'commonjs'
  writeFileSync(path.join(dist, 'package.json'), `${JSON.stringify({ type, sideEffects: false })}\n`)
}
// An older compiler does not understand the types, and with skipLibCheck would silently treat them all as `any`. This makes the
// project's import fail, with a name that says why.
writeFileSync(
  path.join(target, 'typescript-5-required.d.ts'),
  'export declare const THE_TYPES_NEED_TYPESCRIPT_5_OR_LATER: never\n',
)
