import { readFileSync } from 'node:fs'
import path from 'node:path'
import { migrationsFolder, numberOf } from './migration-file.ts'

/** The released versions, oldest first, each with the checksums of the migrations that it added. Written by test/releases/release.ts. */
export type Releases = { version: string; migrations: { [name: string]: string } }[]

export function readReleases(folder = migrationsFolder): Releases {
  return JSON.parse(readFileSync(path.join(folder, 'releases.json'), 'utf8'))
}

/** The release with a migration, for a sentence. */
export function releaseWith(number: string): string {
  const found = readReleases().find(({ migrations }) => Object.keys(migrations).some(name => numberOf(name) === number))
  return found === undefined ? `the version with migration ${number}` : found.version
}
