import type { Command } from 'commander'
import { whole } from './arguments.ts'

/** How much of a list is asked for. */
export type Paging = { take: number; before?: string }

// As a page of the API: more than a screen, and little enough to be read at once.
const takeMax = 1_000

export function addPaging(command: Command): Command {
  return command
    .option('--take <n>', `how many, up to ${takeMax}`, whole({ min: 1, max: takeMax }), 50)
    .option('--before <id>', 'only older ones than this; for the next page')
}

/** Cuts a list that was read one longer than asked for, which tells whether there is more. */
export function pageOf<Entry extends { id: string }>(found: Entry[], { take }: Paging) {
  const shown = found.slice(0, take)
  const hasMore = found.length > take
  const more = hasMore ? `\n\nThere are more: add --before ${shown.at(-1)?.id}` : ''
  return { shown, hasMore, more }
}
