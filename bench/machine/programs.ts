import { accessSync, constants, globSync } from 'node:fs'
import path from 'node:path'

/** Finds a program in PATH or among Debian's PostgreSQL programs, the newest first. */
export function findProgram(name: string): string | undefined {
  const folders = (process.env.PATH ?? '').split(':')
  const debian = globSync('/usr/lib/postgresql/*/bin').sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
  return [...folders, ...debian].map(folder => path.join(folder, name)).find(isExecutable)
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
