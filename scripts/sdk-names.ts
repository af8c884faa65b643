import { operations } from '../src/operations.ts'
import { sandboxOperations } from '../src/sandbox/operations.ts'

type Names = string | { json: string; file: string }

/** The SDK's names of all operations that have one, by resource. */
export const sdkNames: Record<string, Names> = namesByResource()

function namesByResource(): Record<string, Names> {
  const named = [...operations, ...sandboxOperations].flatMap(({ id, sdk }) => (sdk === undefined ? [] : [{ id, sdk }]))
  const byResource = Object.groupBy(
    named,
    ({ sdk }) => (typeof sdk === 'string' ? sdk : sdk.json).split('.', 1)[0] ?? '',
  )
  return Object.fromEntries(
    Object.values(byResource)
      .flatMap((group = []) => group)
      .map(({ id, sdk }) => [id, sdk]),
  )
}

/** The module by which the documentation and the partners' commands know the names, without loading the operations. */
export function sdkNamesModule(): string {
  const lines = Object.entries(sdkNames).map(([id, names]) => `  ${id}: ${written(names)},`)
  return [
    '// Generated from the operations by `npm run generate`. Do not edit.',
    '',
    '/**',
    ' * The SDK’s name of every operation: the resource, then the verb. Uses the words of the glossary, so a member is offboarded, not',
    ' * removed. `list` returns pages, `get` returns one resource by its id. An operation that can also return a file has a second name.',
    ' */',
    'export const sdkNames: Record<string, string | { json: string; file: string }> = {',
    ...lines,
    '}',
    '',
  ].join('\n')
}

function written(names: Names): string {
  return typeof names === 'string' ? `'${names}'` : `{ json: '${names.json}', file: '${names.file}' }`
}
