import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Lists the TypeScript files below a folder of the repository, by paths from its root. */
export function filesBelow(folder: string): string[] {
  return readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
    .map(name => `${folder}/${name}`)
    .filter(file => /\.tsx?$/.test(file) && !/\/(node_modules|dist)\//.test(file))
}

/**
 * The repository's own files that a file imports: values, types and `import()`.
 * @param options.types also `import type`, which Node never loads
 */
export function importsOf(file: string, { types = true } = {}): string[] {
  const all = readFileSync(path.join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
  const code = types ? all : all.replace(/^(import|export) type [^']*'[^']*'/gm, '')
  return [...code.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']*)'/g)].map(([, specifier = '']) =>
    path.posix.normalize(path.posix.join(path.posix.dirname(file), specifier)),
  )
}

/** The first-level folder of `test/` or `bench/` that a file is in. A loose file counts as its own room. */
export function roomOf(file: string): string {
  return file.split('/').slice(0, 2).join('/')
}

/** Finds cycles of a directed graph, each as a path that ends where it begins. Finds at least one if there is any. */
export function cyclesOf(edges: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const cycles: string[] = []
  const done = new Set<string>()
  const visit = (node: string, path: string[]) => {
    if (path.includes(node)) cycles.push([...path.slice(path.indexOf(node)), node].join(' > '))
    else if (!done.has(node)) for (const next of edges.get(node) ?? []) visit(next, [...path, node])
    done.add(node)
  }
  for (const node of edges.keys()) visit(node, [])
  return cycles
}
