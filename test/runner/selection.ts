import path from 'node:path'

/** A file of the repository, and the repository's files that it imports. */
export type Module = { file: string; imports: string[] }

// They import the whole program, so an import of them does not say what a test is about.
const programs = [
  ...['src/app.ts', 'src/main.ts', 'src/open-database.ts', 'src/worker.ts', 'src/tasks.ts', 'cli/run.ts'],
  ...['test/harness/harness.ts', 'test/harness/verbs.ts', 'test/program/program.ts'],
]

/**
 * Selects the test files that a change can reach: those that import a changed file, directly or through others, and those in
 * its folder. Other changed files (a document, a fixture) reach the tests that name them.
 * @param options.all follows imports through the whole program too: a change then reaches most tests of the API
 */
export function testsReachedBy(
  changed: readonly string[],
  modules: readonly Module[],
  { all = false, textOf }: { all?: boolean; textOf(file: string): string },
): string[] {
  const importers = new Map<string, string[]>()
  for (const { file, imports } of modules) {
    for (const each of imports) importers.set(each, [...(importers.get(each) ?? []), file])
  }
  const reached = new Set<string>(changed)
  for (const file of reached) {
    const isEnd = !all && programs.includes(file) && !changed.includes(file)
    if (!isEnd) for (const importer of importers.get(file) ?? []) reached.add(importer)
  }
  const known = new Set(modules.map(({ file }) => file))
  const folders = new Set(changed.filter(file => known.has(file)).map(file => path.posix.dirname(file)))
  const others = changed.filter(file => !known.has(file)).map(file => path.posix.basename(file))
  return [...known]
    .filter(file => file.endsWith('.test.ts'))
    .filter(file => {
      if (reached.has(file) || folders.has(path.posix.dirname(file))) return true
      return others.length > 0 && others.some(name => textOf(file).includes(name))
    })
    .sort()
}
