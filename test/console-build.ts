import { readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildConsole } from '../packages/console/build.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Builds the console before the tests if its sources are newer than what was built. */
export default async function setup(): Promise<void> {
  const sources = ['packages/console', 'packages/sdk/src'].flatMap(folder =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(name => !name.startsWith('dist'))
      .map(name => path.join(root, folder, name)),
  )
  const changedMs = Math.max(...sources.map(file => statSync(file).mtimeMs))
  const builtMs = statSync(path.join(root, 'packages/console/dist/index.html'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (builtMs < changedMs) await buildConsole()
}
