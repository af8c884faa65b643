import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildConsole } from '../../packages/console/build.ts'
import { writePackages } from '../../scripts/packages.ts'
import { packagesFolder } from '../../src/site/packages/routes.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Builds the console if its sources have changed, and the packages if they are missing, as `npm install` does. */
export default async function setup(): Promise<void> {
  const sources = ['packages/console', 'packages/sdk/src'].flatMap(folder =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter(name => !name.startsWith('dist'))
      .map(name => path.join(root, folder, name)),
  )
  const changedMs = Math.max(...sources.map(file => statSync(file).mtimeMs))
  const builtMs = statSync(path.join(root, 'packages/console/dist/index.html'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  if (builtMs < changedMs) await buildConsole()
  if (!existsSync(packagesFolder)) await writePackages(packagesFolder)
}
