import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'

const run = promisify(execFile)
const source = path.join(import.meta.dirname, '..')
const tsc = path.join(path.dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

/** Creates a project with the published package installed. */
export async function installPackage() {
  const folder = await mkdtemp(path.join(tmpdir(), 'midmonth-sdk-'))
  const installed = path.join(folder, 'node_modules/@midmonth/sdk')
  await mkdir(installed, { recursive: true })
  await run(process.execPath, [path.join(source, 'build.ts'), path.join(installed, 'dist')])
  for (const file of ['package.json', 'README.md']) await copyFile(path.join(source, file), path.join(installed, file))
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--skipLibCheck', 'false']
  const typeRoots = ['--typeRoots', path.join(source, '../../node_modules/@types')]
  return {
    folder,
    installed,
    /** Compiles files of the project with strict options. Fails with the compiler's errors. */
    async typecheck(files: string[], options: string[]): Promise<void> {
      const args = ['--noEmit', '--target', 'es2022', ...strict, ...options, ...typeRoots, ...files]
      await run(process.execPath, [tsc, ...args], { cwd: folder }).catch(error => expect.fail(error.stdout))
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}
export type Project = Awaited<ReturnType<typeof installPackage>>
