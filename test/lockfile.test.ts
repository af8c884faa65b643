import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

type Package = { optionalDependencies?: Record<string, string>; version?: string; integrity?: string; link?: boolean }

const { packages } = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8')) as {
  packages: Record<string, Package>
}

// Without the optional packages, npm 11 refuses the lockfile on every platform (npm ci).
test('the lockfile contains every optional package, including those of other platforms', () => {
  const optional = Object.entries(packages).flatMap(([folder, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).map(name => ({ folder, name })),
  )
  // Node and PostgreSQL for four platforms each, plus the tools: an empty list would prove nothing.
  expect(optional.length).toBeGreaterThan(50)
  expect(optional.filter(({ folder, name }) => !isLocked(folder, name))).toEqual([])
})

test('every locked package has a version and a checksum', () => {
  // Workspaces are in the repository, and linked into node_modules.
  const installed = Object.entries(packages).filter(([folder, { link }]) => folder.includes('node_modules/') && !link)
  expect(installed.filter(([, { version, integrity }]) => !version || !integrity)).toEqual([])
})

/** Resolves a package as Node does: in the package's own node_modules, then in each parent's. */
function isLocked(folder: string, name: string): boolean {
  const prefix = folder === '' ? '' : `${folder}/`
  if (`${prefix}node_modules/${name}` in packages) return true
  if (folder === '') return false
  // A workspace is directly below the root.
  const isWorkspace = !folder.includes('node_modules/')
  return isLocked(isWorkspace ? '' : folder.replace(/\/?node_modules\/(@[^/]+\/)?[^/]+$/, ''), name)
}
