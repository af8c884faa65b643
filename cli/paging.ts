import type { Command } from 'commander'
import type { IdKind } from '../src/kernel/ids.ts'
import { id, whole } from './arguments.ts'

/** As large as a page of the API. */
export const takeMax = 1_000

/** @param kind of the listed entries */
export function addPaging<Kind extends Command>(command: Kind, kind: IdKind): Kind {
  return command
    .option('--take <n>', `how many to show, up to ${takeMax}`, whole({ min: 1, max: takeMax }), 50)
    .option('--before <id>', 'only entries older than this one; for the next page', id(kind))
}

/** Says how to get the next page, if there is one. */
export function nextPage(shown: readonly { id: string }[], { hasMore }: { hasMore: boolean }): string {
  return hasMore ? `\n\nMore on the next page: add --before ${shown.at(-1)?.id}` : ''
}
