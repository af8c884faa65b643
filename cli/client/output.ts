import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { List } from '../../packages/sdk/src/call.ts'
import { type SheetRow, table, widthsOf } from '../print.ts'
import { terminal, writeLine } from '../terminal.ts'

type ListOptions = { json?: boolean; all?: boolean }

/**
 * Prints a list: a table of its first page, or with `--all` of every page. With `--json`, the unchanged response of the API, and with
 * `--all --json` one entry per line.
 */
export async function printList<Page extends object, Entry>(
  list: List<Page, Entry>,
  { json = false, all = false }: ListOptions,
  rowOf: (entry: Entry) => SheetRow,
): Promise<void> {
  if (all) return await (json ? printLines(list) : printStream(tableOf(list, rowOf)))
  const page = await list
  if (json) return printJson(page)
  const entries = list.entriesOf(page)
  writeLine(table(entries.map(rowOf)))
  if (hasMore(page, entries.length)) writeLine('\nThere are more: add --all, or raise --take.')
}

/** Prints each entry of a list on a line, as JSON. */
export async function printLines(entries: AsyncIterable<unknown>): Promise<void> {
  await printStream(linesOf(entries))
}

/** Prints a response of the API as JSON. */
export function printJson(answer: unknown): void {
  writeLine(JSON.stringify(answer, null, 2))
}

/** Writes to standard output at the pace of its reader. A reader that stops early, such as `head`, ends the output quietly. */
export async function printStream(chunks: AsyncIterable<string | Uint8Array>): Promise<void> {
  const { stdout } = terminal()
  try {
    await pipeline(Readable.from(chunks), stdout, { end: false })
  } catch (error) {
    if (!isClosedPipe(error)) throw error
  }
}

function isClosedPipe(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'EPIPE'
}

async function* linesOf(entries: AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const entry of entries) yield `${JSON.stringify(entry)}\n`
}

/** A table whose columns are as wide as the first page needs. A longer value of a later page is shown whole and moves its row. */
async function* tableOf<Page, Entry>(
  list: List<Page, Entry>,
  rowOf: (entry: Entry) => SheetRow,
): AsyncGenerator<string> {
  let widths: number[] | undefined
  for await (const page of list.pages()) {
    const rows = list.entriesOf(page).map(rowOf)
    const isFirst = widths === undefined
    if (rows.length === 0 && !isFirst) return
    widths ??= widthsOf(rows)
    yield `${table(rows, { widths, hasHeader: isFirst })}\n`
  }
}

/** Lists with a cursor say whether there is more, the others have a total. */
function hasMore(page: object, shown: number): boolean {
  const { hasMore, total = 0, take = 0 } = page as { hasMore?: boolean; total?: number; take?: number }
  return hasMore ?? (total > shown && shown >= take)
}
